/**
 * Commands that cannot work: refused in one line that says why, with the exit code of
 * docs/command-line.md, without a secret, and nothing is created or changed. Settings that make no
 * sense are in src/config.test.ts.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../command.ts";
import { fillStore } from "../filled-store.ts";
import { makeDatabase, serverPassword, type TestDatabase } from "../postgres-server.ts";
import { skipsUnless } from "../skipping.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { serveHere } from "./running-service.ts";

const failure = 1;
const usage = 2;
const missing = 3;
const tokenRefused = 4;
const taken = 5;
const unavailable = 6;
const folder = makeTemporaryFolder();
const inFolder = (name: string) => join(folder.path, name);
const certificate = (name: string) => join(import.meta.dir, "../certificates", name);
const postgresAt = (place: string) => `postgres://postgres:${serverPassword}@${place}`;
const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
const isNotRoot = skipsUnless(process.getuid?.() === 0, "needs root");
/** Another user than root. */
const other = 1234;

let served: Awaited<ReturnType<typeof serveHere>>;
let empty: TestDatabase;
let full: TestDatabase;
let older: TestDatabase;
let places: Record<string, string>;
let variables: Record<string, string>;

const hook = "https://example.com/hook";
const state = { garden: "gardener", url: hook, seq: 0 };
/** Files with which `events --forward` can't go on. */
const states = {
  "empty.state": "",
  "null.state": "null",
  "half.state": '{"garden":"gardener"}',
  "kims.state": JSON.stringify({ ...state, garden: "kim" }),
  "other.state": JSON.stringify({ ...state, url: `${hook}/2` }),
  "later.state": JSON.stringify({ ...state, seq: 7 }),
};

/** Roles of PostgreSQL that are no good for a service. */
const roles = {
  refused_rightless: "",
  refused_partial:
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO refused_partial; " +
    "REVOKE DELETE ON plants FROM refused_partial",
  refused_reader: "ALTER ROLE refused_reader SET default_transaction_read_only = on",
  refused_older:
    "CREATE FUNCTION public.version() RETURNS text LANGUAGE sql AS " +
    "$$ SELECT 'PostgreSQL 14.9 on a machine' $$; " +
    "ALTER ROLE refused_older SET search_path = public, pg_catalog",
};
const asRole = (role: keyof typeof roles, { url }: TestDatabase) =>
  url.replace("//postgres:", `//${role}:`);

beforeAll(async () => {
  served = await serveHere();
  await served.call("POST /plants", { body: '{"name":"Rose","id":7}' });
  [empty, full, older] = await Promise.all([makeDatabase(), makeDatabase(), makeDatabase()]);
  // The schemas of 1.0.
  await fillStore(older.url, 1);
  await older.query("UPDATE plantstore_schema SET version = 6");
  for (const [name, schema] of [
    ["older", 4],
    ["newer", 6],
  ] as const) {
    await fillStore(inFolder(`${name}.db`), 1);
    using file = new Database(inFolder(`${name}.db`));
    file.run(`PRAGMA user_version = ${schema}`);
  }
  // The lock that a service leaves.
  for (const name of ["older", "newer", "plants", "corrupt", "songs", "text"])
    writeFileSync(inFolder(`${name}.db-serving`), "");
  await fillStore(inFolder("plants.db"), 900);
  await fillStore(full.url, 1);
  for (const [role, statements] of Object.entries(roles)) {
    await full.query(`CREATE ROLE ${role} LOGIN PASSWORD '${serverPassword}'; ${statements}`);
  }
  await runInProcess(["backup", inFolder("backup.db"), "--database", inFolder("plants.db")]);
  const flipped = readFileSync(inFolder("backup.db"));
  flipped.write("f", flipped.indexOf("Fern 700"));
  writeFileSync(inFolder("flipped.db"), flipped);
  // The log of a file that was lost.
  writeFileSync(inFolder("lost.db-wal"), "a plant");
  await Bun.$`mkfifo ${inFolder("pipe.db")}`;
  writeFileSync(inFolder("text.db"), "no database, whatever its name is".repeat(99));
  const bytes = readFileSync(inFolder("plants.db"));
  writeFileSync(inFolder("short.db"), bytes.subarray(0, -4_096 * 3));
  writeFileSync(inFolder("corrupt.db"), bytes.fill(0, bytes.length / 2));
  using songs = new Database(inFolder("songs.db"));
  songs.run("CREATE TABLE songs (title)");
  writeFileSync(
    inFolder("broken.pem"),
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
  );
  for (const [name, text] of Object.entries(states)) writeFileSync(inFolder(name), `${text}\n`);
  if (!isNotRoot) await layOthers();
  places = {
    FOLDER: folder.path,
    SERVED: served.database,
    "SERVED-PORT": String(served.port),
    "SERVED-URL": served.url,
    HOOK: hook,
    EMPTY: empty.url,
    FULL: full.url,
    "OLDER-URL": older.url,
    REFUSED: postgresAt("127.0.0.1:1/x"),
    UNKNOWN: postgresAt("nope.invalid/x"),
    SILENT: postgresAt(`127.0.0.1:${silent.port}/x`),
    "WRONG-PASSWORD": empty.url.replace("@", "-too@"),
    "NO-DATABASE": `${empty.url}-too`,
    "NO-TABLES": asRole("refused_rightless", empty),
    "NO-RIGHTS": asRole("refused_rightless", full),
    "FEW-RIGHTS": asRole("refused_partial", full),
    "READ-ONLY": asRole("refused_reader", full),
    "OLD-SERVER": asRole("refused_older", full),
    CERT: certificate("server.pem"),
    KEY: certificate("server-key.pem"),
    "OTHER-KEY": certificate("renewed-key.pem"),
    BROKEN: inFolder("broken.pem"),
  };
  variables = {
    PLANTSTORE_URL: served.url,
    PLANTSTORE_TOKEN: served.token,
    PLANTSTORE_DATABASE: inFolder("new.db"),
    PLANTSTORE_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
  };
});

/**
 * The other user's folder, that user's file in root's folder, root's link into the user's folder,
 * and the user's link to root's store.
 */
async function layOthers(): Promise<void> {
  chmodSync(folder.path, 0o755);
  mkdirSync(inFolder("others"));
  await fillStore(inFolder("others/plants.db"), 3);
  await fillStore(inFolder("others.db"), 3);
  symlinkSync(inFolder("others/plants.db"), inFolder("link.db"));
  symlinkSync(inFolder("plants.db"), inFolder("others-link.db"));
  symlinkSync(inFolder("plants.db"), inFolder("own-link.db"));
  lchownSync(inFolder("others-link.db"), other, other);
  for (const name of ["others", "others.db"]) chownSync(inFolder(name), other, other);
}

afterAll(async () => {
  await served[Symbol.asyncDispose]();
  const names = Object.keys(roles).join(", ");
  await full.query(`DROP OWNED BY ${names}; DROP ROLE ${names}`);
  await Promise.all([empty, full, older].map((database) => database.drop()));
  silent.stop(true);
  folder[Symbol.dispose]();
});

type Refusal = readonly [line: string, exitCode: number, reason: string];

const notRoots =
  "it belongs to user 1234, not to root (run the command as that user: " +
  "sudo -u '#1234' plantstore …).";

/** Root opens only its own stores, whatever links another user has made. */
const refusedToRoot: readonly Refusal[] = [
  ["serve --port 0 --database others/plants.db", failure, notRoots],
  ["serve --port 0 --database others.db", failure, notRoots],
  ["serve --port 0 --database link.db", failure, notRoots],
  ["serve --port 0 --database others-link.db", failure, notRoots],
  ["token create ada --database others/new.db", failure, notRoots],
  ["backup new.db --database others/plants.db", failure, notRoots],
  ["restore backup.db --database others/new.db", failure, notRoots],
  ["copy others/plants.db EMPTY", failure, notRoots],
];

/** Words in capitals stand for the places above; a new.db one doesn't exist. */
const refused: readonly Refusal[] = [
  ["grow", usage, 'There is no command "grow". See plantstore --help.'],
  ["--port 1 serve", usage, "The command comes first"],
  ["srve", usage, "Did you mean serve?"],
  ["tokens list", usage, "Did you mean token list?"],
  ["toke", usage, "Did you mean token?"],
  ["token crate alice", usage, "Did you mean token create?"],
  ["list", usage, "Did you mean token list or garden list or plants list?"],
  ["serve --prot 1", usage, "Did you mean --port?"],
  ["serve -port 1", usage, "Did you mean --port?"],
  ["serve --color red", usage, "There is no flag --color. "],
  ["serve --port", usage, "--port"],
  ["serve --port --host x", usage, "--port"],

  ["serve --port 80000 --database new.db", usage, "--port must be"],
  ["serve --port SERVED-PORT --database new.db", failure, "is in use. Stop the other program"],
  ["serve --port 0 --host nope.invalid --database new.db", failure, "the host is not a name"],
  ["serve --port 0 --database lost.db", failure, "may hold plants"],
  ["serve --port 0 --database SERVED", failure, "another process is serving it already"],
  ["serve --database oracle://x", usage, "of a PostgreSQL database"],
  ["serve --port 0 --database FOLDER", failure, "Cannot open"],
  ["serve --port 0 --database songs.db", failure, "of another program"],
  ["serve --port 0 --database text.db", failure, "it is not a database"],
  ["serve --port 0 --database corrupt.db", failure, "it is corrupt"],
  // Not even root may create a file there.
  ...(process.platform === "linux"
    ? [
        [
          "serve --port 0 --database /sys/plants.db",
          failure,
          "must be able to write the file",
        ] as const,
        ["serve --port 0 --database /proc/x.db", failure, "cannot be created there"] as const,
      ]
    : []),
  ["serve --port 0 --database older.db", failure, "open it with 2.0 first"],
  ["serve --port 0 --database newer.db", failure, "knows schemas up to 5: use a newer version"],
  ["serve --port 0 --database OLDER-URL", failure, "open it with 2.0 first"],
  ["serve --port 0 --database REFUSED", failure, "the connection is refused"],
  ["serve --port 0 --database UNKNOWN", failure, "the host is not known"],
  ["serve --port 0 --database WRONG-PASSWORD", failure, "the user or the password is wrong"],
  ["serve --port 0 --database NO-DATABASE", failure, "there is no database"],
  ["serve --port 0 --database NO-TABLES", failure, "the role lacks rights on it"],
  ["serve --port 0 --database NO-RIGHTS", failure, "the role lacks rights"],
  ["serve --port 0 --database FEW-RIGHTS", failure, "the role lacks rights: DELETE on plants"],
  ["serve --port 0 --database READ-ONLY", failure, "takes no writes"],
  ["serve --port 0 --database OLD-SERVER", failure, "it is PostgreSQL 14, and 15 or later is"],
  [
    "serve --port 0 --database SILENT --database-connect-timeout-ms 100",
    failure,
    "the host doesn't respond",
  ],
  ["token list --database older.db", failure, "open it with 2.0 first"],
  [
    "backup new.db --database older.db",
    failure,
    "older.db: its schema is 4, of version 1.0 or older",
  ],
  ["copy older.db EMPTY", failure, "open it with 2.0 first"],
  ["serve --jwt-issuer https://login.example", usage, "--jwt-audience is missing"],
  ["serve --jwt-audience plants", usage, "--jwt-issuer is missing"],
  ["serve --tls-cert CERT", usage, "--tls-key is missing"],
  ["serve --tls-key KEY", usage, "--tls-cert is missing"],
  ["serve --tls-cert new.db --tls-key KEY", usage, "cannot be read: there is no such file"],
  ["serve --tls-cert BROKEN --tls-key KEY", usage, "are not a certificate and its private key"],
  ["serve --tls-cert CERT --tls-key CERT", usage, "are not a certificate and its private key"],
  ["serve --tls-cert CERT --tls-key OTHER-KEY", usage, "are not a certificate and its private key"],
  ["token list --database new.db", failure, "there is no such file"],

  ["backup new.db --database new.db", failure, "there is no such file"],
  ["backup backup.db --database plants.db", failure, "exists already."],
  ["backup - --database plants.db", usage, "FILE must be the path of a new file."],
  ["backup new/x.db --database plants.db", failure, "there is no such folder"],
  ["backup new.db --database FULL", usage, "For PostgreSQL, use pg_dump: docs/postgresql.md."],
  ["backup new.db --database text.db", failure, "it is not a database"],
  ["backup new.db --database corrupt.db", failure, "corrupt"],

  ["restore new.db --database new.db", failure, "there is no such file"],
  ["restore FOLDER --database new.db", failure, "it is a folder"],
  ["restore pipe.db --database new.db", failure, "it is not a regular file"],
  ["restore text.db --database plants.db", failure, "text.db: it is not a database"],
  ["restore flipped.db --database plants.db", failure, "flipped.db: it is corrupt"],
  ["restore short.db --database plants.db", failure, "short.db"],
  ["restore corrupt.db --database plants.db", failure, "corrupt.db"],
  [
    "restore newer.db --database plants.db",
    failure,
    "newer.db: its schema is 6, and this version knows",
  ],
  ["restore older.db --database plants.db", failure, "open it with 2.0 first"],
  ["restore songs.db --database plants.db", failure, "of another program"],
  ["restore backup.db --database SERVED", failure, "a service is using it (stop it first)"],
  [
    "restore backup.db --database FULL",
    usage,
    "For PostgreSQL, use pg_restore: docs/postgresql.md.",
  ],

  ["copy plants.db", usage, "URL is missing"],
  ["copy plants.db new.db", usage, "URL must be such as postgres://user@host/database"],
  ["copy EMPTY new.db", usage, "FILE must be the path of a SQLite store"],
  ["copy new.db EMPTY", failure, "there is no such file"],
  ["copy SERVED EMPTY", failure, "a service is using it"],
  ["copy plants.db FULL", failure, "is not empty. Use a new"],
  ["copy plants.db OLDER-URL", failure, "open it with 2.0 first"],
  ["copy plants.db REFUSED", failure, "the connection is refused"],
  [`copy plants.db ${postgresAt("x/x?sslmode=x")}`, usage, "sslmode must be one of"],

  ["token create", usage, "USER is missing. Usage: plantstore token create USER [flags]"],
  ["token create ", usage, "USER must be"],
  ["token create a --garden ", usage, "--garden must be"],
  ["token create \u{1F469}\u200D\u{1F33E}", usage, "or format character"],
  ["token create a --scope admin", usage, "--scope must be"],
  ["token revoke plant_secret", usage, "not the token itself"],
  ...["soon", "0d", "30", "30y", "1.5d", "1000000d", "2131-02-30", "2001-01-01"].map(
    (expiry) => [`token create a --expires ${expiry}`, usage, "--expires must be"] as const,
  ),
  // Without a zone.
  ["token create a --expires 2131-01-01T12:00:00", usage, "--expires must be"],

  ["PLANTSTORE_TOKEN= plants list", tokenRefused, "Set PLANTSTORE_TOKEN"],
  ["PLANTSTORE_TOKEN=plant_abc plants list", tokenRefused, "not a whole token"],
  [
    `PLANTSTORE_TOKEN=plant_${"x".repeat(49)} plants list`,
    tokenRefused,
    "PLANTSTORE_TOKEN has a typo",
  ],
  [
    "PLANTSTORE_TOKEN=somebody plants list",
    tokenRefused,
    "plantstore token create USER --database FILE",
  ],
  ["plants list --token x", usage, "--token"],
  ["plants list --limit many", usage, '"many"'],
  ["plants list --search=", usage, "--search needs a word"],
  ["plants list --newest=yes", usage, "--newest"],
  ["plants list --url http://127.0.0.1:1", unavailable, "refused. Is the service running?"],
  ["plants list --url http://nope.invalid", unavailable, "not known. Is the service running?"],
  ["plants list --url SERVED-URL/plants", failure, "Check its address."],
  ["plants list --url https://127.0.0.1:SERVED-PORT", unavailable, "Is it SERVED-URL?"],
  ["plants get -7", usage, "Put -- before a word"],
  ["plants add royal fern", usage, '"fern" is unexpected. Put several words'],
  ["plants add Fern --id 7", taken, "7"],
  ["plants edit 12345 --tag x", missing, "There is no plant 12345."],
  ["plants edit 7 --name=", usage, "name must"],
  ["plants delete", usage, "Which plants?"],
  ["plants delete 12345", missing, "There is no plant 12345."],
  ["plants delete 7 007", usage, '"007"'],
  ["plants delete 7 --tag x", usage, "not both"],
  ["plants delete 7 --url SERVED-URL/elsewhere", failure, "Check its address."],
  ["whoami --url SERVED-URL/elsewhere", failure, "Check its address."],
  ["health --url SERVED-URL/plants", unavailable, "(status 401). Check its address."],
  ["health --port SERVED-PORT --base-path /v1", unavailable, "(status 404). Check its address."],
  ["health --url https://127.0.0.1:SERVED-PORT", unavailable, "Is it SERVED-URL?"],
  ["import x.csv --format tsv", usage, "--format must be"],
  ["import /dev/null/plants.csv", failure, "/dev/null/plants.csv"],
  ["export /dev/null/plants.csv", failure, "/dev/null/plants.csv"],
  ["export plants.xlsx", usage, "There is no export format .xlsx. Use .csv"],
  ["export plants.csv.gz", usage, "There is no export format .gz."],

  ["events --last -1", usage, "--last"],
  ["events --since yesterday", usage, "--since must be a time such as 30m, 2h or 7d"],
  ["events --since 0h", usage, "--since must be a time"],
  ["events --plant fern", usage, "--plant must be an integer such as 7"],
  ["events --after many", usage, '"many"'],
  ["events --after 12345", failure, "Run it again without --after to see the events"],
  [
    "PLANTSTORE_WEBHOOK_SECRET= events --forward HOOK --state new.db",
    usage,
    "PLANTSTORE_WEBHOOK_SECRET is missing",
  ],
  // Too short, and not base64 with its prefix.
  ...["whsec_c2hvcnQ=", "x".repeat(40)].map((secret) => {
    const line = `PLANTSTORE_WEBHOOK_SECRET=${secret} events --forward HOOK --state new.db`;
    return [line, usage, "is not valid"] as const;
  }),
  ["events --forward ftp://example.com --state new.db", usage, "must be a URL with http"],
  ["events --forward example.com/hook --state new.db", usage, "must be a URL with http"],
  [`events --forward https://u:${serverPassword}@x.test --state new.db`, usage, "without a user"],
  ["events --forward HOOK --state new.db --user ann", usage, "Leave out --user."],
  ["events --forward HOOK --state=", usage, "needs --state FILE"],
  ["events --forward HOOK --state new.db --from end", usage, "--from must be one of now, start"],
  [
    "events --forward HOOK --state new/x.db",
    failure,
    "Cannot write new/x.db: there is no such folder.",
  ],
  ["events --forward HOOK --state empty.state", usage, "is not a state file"],
  ["events --forward HOOK --state null.state", usage, "is not a state file"],
  ["events --forward HOOK --state half.state", usage, "is not a state file"],
  ["events --forward HOOK --state kims.state", usage, 'belongs to another garden, "kim".'],
  ["events --forward HOOK --state other.state", usage, "belongs to another URL."],
  // Until the file is deleted.
  [
    "events --forward HOOK --state later.state --from start",
    failure,
    "The events after 7 are no longer kept, or the service has other ones since a restore, so " +
      "some can't be sent. Delete later.state to start over.",
  ],
  ...(isNotRoot ? [] : refusedToRoot),
];

const readFolder = () =>
  readdirSync(folder.path, { recursive: true, withFileTypes: true }).map((entry) => [
    entry.name,
    entry.isFile() && Bun.hash(readFileSync(join(entry.parentPath, entry.name))),
  ]);

const fillIn = (text: string) =>
  text
    .replaceAll(/(?<![\w./])[a-z-]+(?:\/[a-z-]+)?\.(?:db|state)\b/g, inFolder)
    .replaceAll(/[A-Z]+(?:-[A-Z]+)*/g, (word) => places[word] ?? word);

test.each(refused)("plantstore %s", async (line, exitCode, reason) => {
  const before = readFolder();
  const words = line.split(" ");
  const own = words.filter((word) => /^[A-Z_]+=/.test(word));
  const finished = await runInProcess(words.slice(own.length).map(fillIn), {
    ...variables,
    ...Object.fromEntries(own.map((word) => word.split(/=(.*)/s))),
  });
  expect(finished).toMatchObject({ exitCode, out: "" });
  expect(finished.errors).toMatch(/^plantstore: .+\n$/);
  expect(finished.errors).toContain(fillIn(reason));
  expect(finished.errors).not.toContain(serverPassword);
  expect(finished.errors).not.toContain("PRIVATE");
  expect(readFolder()).toEqual(before);
});

test.skipIf(isNotRoot)("root may use its own link, and a backup in another folder", async () => {
  for (const line of [
    "token list --database own-link.db",
    "restore others/plants.db --database new.db",
  ]) {
    expect(await runInProcess(fillIn(line).split(" "))).toMatchObject({ exitCode: 0 });
  }
});
