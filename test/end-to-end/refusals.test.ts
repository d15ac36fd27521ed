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
  for (const name of ["older", "newer", "plants", "zeroed", "songs", "text"])
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
  // The logs of files that were lost.
  for (const name of ["lost.db-wal", "emptied.db-wal"]) writeFileSync(inFolder(name), "a plant");
  writeFileSync(inFolder("emptied.db"), "");
  await Bun.$`mkfifo ${inFolder("pipe.db")}`;
  writeFileSync(inFolder("text.db"), "no database, whatever its name is".repeat(99));
  const bytes = readFileSync(inFolder("plants.db"));
  writeFileSync(inFolder("short.db"), bytes.subarray(0, -4_096 * 3));
  writeFileSync(inFolder("zeroed.db"), bytes.fill(0, bytes.length / 2));
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
  ["serve --port 0 --database others/plants.db", 1, notRoots],
  ["serve --port 0 --database others.db", 1, notRoots],
  ["serve --port 0 --database link.db", 1, notRoots],
  ["serve --port 0 --database others-link.db", 1, notRoots],
  ["token create ada --database others/new.db", 1, notRoots],
  ["backup new.db --database others/plants.db", 1, notRoots],
  ["restore backup.db --database others/new.db", 1, notRoots],
  ["copy others/plants.db EMPTY", 1, notRoots],
];

/** Words in capitals stand for the places above. Files are in the folder; new.db isn't there. */
const refused: readonly Refusal[] = [
  ["grow", 2, 'There is no command "grow". See plantstore --help.'],
  ["--port 1 serve", 2, "The command comes first"],
  ["srve", 2, "Did you mean serve?"],
  ["tokens list", 2, "Did you mean token list?"],
  ["toke", 2, "Did you mean token?"],
  ["token crate alice", 2, "Did you mean token create?"],
  ["list", 2, "Did you mean token list or garden list or plants list?"],
  ["serve --prot 1", 2, "Did you mean --port?"],
  ["serve -port 1", 2, "Did you mean --port?"],
  ["serve --color red", 2, "There is no flag --color. "],
  ["serve --port", 2, "--port"],
  ["serve --port --host x", 2, "--port"],

  ["serve --port 80000 --database new.db", 2, "--port must be"],
  ["serve --port SERVED-PORT --database new.db", 1, "is in use. Stop the other program"],
  ["serve --port 0 --host nope.invalid --database new.db", 1, "the host is not a name"],
  ["serve --port 0 --database lost.db", 1, "may hold plants"],
  ["serve --port 0 --database SERVED", 1, "another process is serving it already"],
  ["serve --database oracle://x", 2, "of a PostgreSQL database"],
  ["serve --port 0 --database FOLDER", 1, "Cannot open"],
  ["serve --port 0 --database songs.db", 1, "of another program"],
  ["serve --port 0 --database text.db", 1, "it is not a database"],
  ["serve --port 0 --database zeroed.db", 1, "it is corrupt"],
  // Not even root may create a file there.
  ...(process.platform === "linux"
    ? [
        ["serve --port 0 --database /sys/plants.db", 1, "must be able to write"] as const,
        ["serve --port 0 --database /proc/x.db", 1, "cannot be created there"] as const,
      ]
    : []),
  ["serve --port 0 --database older.db", 1, "open it with 2.0 first"],
  ["serve --port 0 --database newer.db", 1, "knows schemas up to 5: use a newer version"],
  ["serve --port 0 --database OLDER-URL", 1, "open it with 2.0 first"],
  ["serve --port 0 --database REFUSED", 1, "the connection is refused"],
  ["serve --port 0 --database UNKNOWN", 1, "the host is not known"],
  ["serve --port 0 --database WRONG-PASSWORD", 1, "the user or the password is wrong"],
  ["serve --port 0 --database NO-DATABASE", 1, "there is no database"],
  ["serve --port 0 --database NO-TABLES", 1, "the role lacks rights on it"],
  ["serve --port 0 --database NO-RIGHTS", 1, "the role lacks rights"],
  ["serve --port 0 --database FEW-RIGHTS", 1, "the role lacks rights: DELETE on plants"],
  ["serve --port 0 --database READ-ONLY", 1, "takes no writes"],
  ["serve --port 0 --database OLD-SERVER", 1, "it is PostgreSQL 14, and 15 or later is"],
  ["serve --port 0 --database SILENT --database-connect-timeout-ms 100", 1, "doesn't respond"],
  ["token list --database older.db", 1, "open it with 2.0 first"],
  ["backup new.db --database older.db", 1, "older.db: its schema is 4, of version 1.0"],
  ["copy older.db EMPTY", 1, "open it with 2.0 first"],
  ["serve --jwt-issuer https://login.example", 2, "--jwt-audience is missing"],
  ["serve --jwt-audience plants", 2, "--jwt-issuer is missing"],
  ["serve --tls-cert CERT", 2, "--tls-key is missing"],
  ["serve --tls-key KEY", 2, "--tls-cert is missing"],
  ["serve --tls-cert new.db --tls-key KEY", 2, "cannot be read: there is no such file"],
  ["serve --tls-cert BROKEN --tls-key KEY", 2, "are not a certificate and its private key"],
  ["serve --tls-cert CERT --tls-key CERT", 2, "are not a certificate and its private key"],
  ["serve --tls-cert CERT --tls-key OTHER-KEY", 2, "are not a certificate and its private key"],
  ["token list --database new.db", 1, "there is no such file"],

  ["backup new.db --database new.db", 1, "there is no such file"],
  ["backup backup.db --database plants.db", 1, "exists already."],
  ["backup - --database plants.db", 2, "FILE must be the path of a new file."],
  ["backup new/x.db --database plants.db", 1, "there is no such folder"],
  ["backup new.db --database FULL", 2, "For PostgreSQL, use pg_dump: docs/postgresql.md."],
  ["backup new.db --database text.db", 1, "it is not a database"],
  ["backup new.db --database emptied.db", 1, "may hold plants"],
  ["backup new.db --database zeroed.db", 1, "zeroed.db: it is corrupt"],

  ["restore new.db --database new.db", 1, "there is no such file"],
  ["restore FOLDER --database new.db", 1, "it is a folder"],
  ["restore pipe.db --database new.db", 1, "it is not a regular file"],
  ["restore text.db --database plants.db", 1, "text.db: it is not a database"],
  ["restore flipped.db --database plants.db", 1, "flipped.db: it is corrupt"],
  ["restore short.db --database plants.db", 1, "short.db: it is corrupt"],
  ["restore zeroed.db --database plants.db", 1, "zeroed.db: it is corrupt"],
  ["restore newer.db --database plants.db", 1, "newer.db: its schema is 6, and this version knows"],
  ["restore older.db --database plants.db", 1, "open it with 2.0 first"],
  ["restore songs.db --database plants.db", 1, "of another program"],
  ["restore backup.db --database SERVED", 1, "a service is using it (stop it first)"],
  ["restore backup.db --database FULL", 2, "use pg_restore: docs/postgresql.md."],

  ["copy plants.db", 2, "URL is missing"],
  ["copy plants.db new.db", 2, "URL must be such as postgres://user@host/database"],
  ["copy EMPTY new.db", 2, "FILE must be the path of a SQLite store"],
  ["copy new.db EMPTY", 1, "there is no such file"],
  ["copy emptied.db EMPTY", 1, "may hold plants"],
  ["copy SERVED EMPTY", 1, "a service is using it"],
  ["copy plants.db FULL", 1, "is not empty. Use a new"],
  ["copy plants.db OLDER-URL", 1, "open it with 2.0 first"],
  ["copy plants.db REFUSED", 1, "the connection is refused"],
  [`copy plants.db ${postgresAt("x/x?sslmode=x")}`, 2, "sslmode must be one of"],

  ["token create", 2, "USER is missing. Usage: plantstore token create USER [flags]"],
  ["token create ", 2, "USER must be"],
  ["token create a --garden ", 2, "--garden must be"],
  ["token create \u{1F469}\u200D\u{1F33E}", 2, "or format character"],
  ["token create a --scope admin", 2, "--scope must be"],
  ["token revoke plant_secret", 2, "not the token itself"],
  ...["soon", "0d", "30", "30y", "1.5d", "1000000d", "2131-02-30", "2001-01-01"].map(
    (expiry) => [`token create a --expires ${expiry}`, 2, "--expires must be"] as const,
  ),
  // Without a zone.
  ["token create a --expires 2131-01-01T12:00:00", 2, "--expires must be"],

  ["PLANTSTORE_TOKEN= plants list", 4, "Set PLANTSTORE_TOKEN"],
  ["PLANTSTORE_TOKEN=plant_abc plants list", 4, "not a whole token"],
  [`PLANTSTORE_TOKEN=plant_${"x".repeat(49)} plants list`, 4, "PLANTSTORE_TOKEN has a typo"],
  ["PLANTSTORE_TOKEN=somebody plants list", 4, "token create USER --database FILE"],
  ["plants list --token x", 2, "--token"],
  ["plants list --limit many", 2, '"many"'],
  ["plants list --search=", 2, "--search needs a word"],
  ["plants list --newest=yes", 2, "--newest"],
  ["plants list --url http://127.0.0.1:1", 6, "refused. Is the service running?"],
  ["plants list --url http://nope.invalid", 6, "not known. Is the service running?"],
  ["plants list --url SERVED-URL/plants", 1, "Check its address."],
  ["plants list --url https://127.0.0.1:SERVED-PORT", 6, "Is it SERVED-URL?"],
  ["plants get -7", 2, "Put -- before a word"],
  ["plants add royal fern", 2, '"fern" is unexpected. Put several words'],
  ["plants add Fern --id 7", 5, "7"],
  ["plants edit 12345 --tag x", 3, "There is no plant 12345."],
  ["plants edit 7 --name=", 2, "name must"],
  ["plants edit 7", 2, "Nothing to change."],
  ["plants delete", 2, "Which plants?"],
  ["plants delete 12345", 3, "There is no plant 12345."],
  ["plants delete 7 007", 2, '"007"'],
  ["plants delete 7 --tag x", 2, "not both"],
  ["plants delete 7 --url SERVED-URL/elsewhere", 1, "Check its address."],
  ["whoami --url SERVED-URL/elsewhere", 1, "Check its address."],
  ["health --url SERVED-URL/plants", 6, "(status 401). Check its address."],
  ["health --port SERVED-PORT --base-path /v1", 6, "(status 404). Check its address."],
  ["health --url https://127.0.0.1:SERVED-PORT", 6, "Is it SERVED-URL?"],
  ["import x.csv --format tsv", 2, "--format must be"],
  ["import /dev/null/plants.csv", 1, "/dev/null/plants.csv"],
  ["export /dev/null/plants.csv", 1, "/dev/null/plants.csv"],
  ["export plants.xlsx", 2, "There is no export format .xlsx. Use .csv"],
  ["export plants.csv.gz", 2, "There is no export format .gz."],

  ["events --last -1", 2, "--last"],
  ["events --since yesterday", 2, "--since must be a time such as 30m, 2h or 7d"],
  ["events --since 0h", 2, "--since must be a time"],
  ["events --plant fern", 2, "--plant must be an integer such as 7"],
  ["events --after many", 2, '"many"'],
  ["events --after 12345", 1, "Run it again without --after to see the events"],
  ["PLANTSTORE_WEBHOOK_SECRET= events --forward HOOK --state new.db", 2, "SECRET is missing"],
  // Too short, and not base64 with its prefix.
  ...["whsec_c2hvcnQ=", "x".repeat(40)].map((secret) => {
    const line = `PLANTSTORE_WEBHOOK_SECRET=${secret} events --forward HOOK --state new.db`;
    return [line, 2, "is not valid"] as const;
  }),
  ["events --forward ftp://example.com --state new.db", 2, "must be a URL with http"],
  ["events --forward example.com/hook --state new.db", 2, "must be a URL with http"],
  [`events --forward https://u:${serverPassword}@x.test --state new.db`, 2, "without a user"],
  ["events --forward HOOK --state new.db --user ann", 2, "Leave out --user."],
  ["events --forward HOOK --state=", 2, "needs --state FILE"],
  ["events --forward HOOK --state new.db --from end", 2, "--from must be one of now, start"],
  ["events --forward HOOK --state new/x.db", 1, "Cannot write new/x.db: there is no such folder."],
  ["events --forward HOOK --state empty.state", 2, "is not a state file"],
  ["events --forward HOOK --state null.state", 2, "is not a state file"],
  ["events --forward HOOK --state half.state", 2, "is not a state file"],
  ["events --forward HOOK --state kims.state", 2, 'belongs to another garden, "kim".'],
  ["events --forward HOOK --state other.state", 2, "belongs to another URL."],
  // Until the file is deleted.
  [
    "events --forward HOOK --state later.state --from start",
    1,
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
    .replaceAll(/[A-Z]+(?:-[A-Z]+)*/g, (word) => places[word] ?? word)
    .replaceAll(/(?<![\w./-])[a-z-]+(?:\/[a-z-]+)?\.(?:db|state)\b/g, inFolder);

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
