/**
 * Commands that cannot work: refused in one line that says why, with the exit code of
 * docs/command-line.md, without a secret, and nothing is created or changed. Settings that make no
 * sense are in src/config.test.ts.
 */
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import {
  chmodSync,
  lchownSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../../testing/command.ts";
import { fillStore } from "../../testing/filled-store.ts";
import { makeDatabase, serverPassword, type TestDatabase } from "../../testing/postgres-server.ts";
import { serveHere } from "../../testing/running-service.ts";
import { skipsUnless } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const folder = makeTemporaryFolder();
const inFolder = (name: string) => join(folder.path, name);
const certificate = (name: string) => join(import.meta.dir, "../certificates", name);
const postgresAt = (place: string) => `postgres://postgres:${serverPassword}@${place}`;
const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
const isNotRoot = skipsUnless(process.getuid?.() === 0, "needs root");
/** Another user than root. */
const other = 1234;

const served = await serveHere();
await served.call("POST /plants", { body: '{"name":"Rose","id":7}' });
const [empty, full, older] = await Promise.all([makeDatabase(), makeDatabase(), makeDatabase()]);
for (const store of [older.url, inFolder("older.db"), inFolder("newer.db"), full.url]) {
  await fillStore(store, 1);
}
// The schemas of 1.0.
await older.query("UPDATE plantstore_schema SET version = 6");
changeFile("older.db", "PRAGMA user_version = 4");
changeFile("newer.db", "PRAGMA user_version = 6");
changeFile("songs.db", "CREATE TABLE songs (title)");
await fillStore(inFolder("plants.db"), 900);
await runInProcess(["backup", inFolder("backup.db"), "--database", inFolder("plants.db")]);
const flipped = readFileSync(inFolder("backup.db"));
flipped.write("f", flipped.indexOf("Fern 700"));
writeFileSync(inFolder("flipped.db"), flipped);
writeFileSync(inFolder("zeroed.db"), flipped.fill(0, flipped.length / 2));
writeFileSync(inFolder("text.db"), "no database, whatever its name is".repeat(99));
// The log of a file that was lost.
writeFileSync(inFolder("lost.db-wal"), "a plant");
// The lock that a service leaves.
for (const name of ["older", "newer", "plants", "songs", "text"])
  writeFileSync(inFolder(`${name}.db-serving`), "");

function changeFile(name: string, sql: string): void {
  using file = new Database(inFolder(name));
  file.run(sql);
}

const hook = "https://example.com/hook";
const state = { garden: "gardener", url: hook, seq: 0 };
/** Files with which `events --forward` can't go on. */
const states = {
  "empty.state": "",
  "kims.state": JSON.stringify({ ...state, garden: "kim" }),
  "other.state": JSON.stringify({ ...state, url: `${hook}/2` }),
  "later.state": JSON.stringify({ ...state, seq: 7 }),
};
for (const [name, text] of Object.entries(states)) writeFileSync(inFolder(name), `${text}\n`);

/** Roles of PostgreSQL that are no good for a service. */
const roles = {
  refused_rightless: "",
  refused_partial:
    "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO refused_partial; " +
    "REVOKE DELETE ON plants FROM refused_partial",
  refused_reader: "ALTER ROLE refused_reader SET default_transaction_read_only = on",
};
for (const [role, statements] of Object.entries(roles)) {
  await full.query(`CREATE ROLE ${role} LOGIN PASSWORD '${serverPassword}'; ${statements}`);
}
const asRole = (role: keyof typeof roles, { url }: TestDatabase) =>
  url.replace("//postgres:", `//${role}:`);

// Another user's store, that user's link to root's store, and root's own link to it.
if (!isNotRoot) {
  chmodSync(folder.path, 0o755);
  await fillStore(inFolder("others.db"), 3);
  for (const name of ["others-link.db", "own-link.db"]) {
    symlinkSync(inFolder("plants.db"), inFolder(name));
  }
  for (const name of ["others.db", "others-link.db"]) lchownSync(inFolder(name), other, other);
}

const places: Record<string, string> = {
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
  "NO-RIGHTS": asRole("refused_rightless", empty),
  "FEW-RIGHTS": asRole("refused_partial", full),
  "READ-ONLY": asRole("refused_reader", full),
  CERT: certificate("server.pem"),
  "OTHER-KEY": certificate("renewed-key.pem"),
};
const variables = {
  PLANTSTORE_URL: served.url,
  PLANTSTORE_TOKEN: served.token,
  PLANTSTORE_DATABASE: inFolder("new.db"),
  PLANTSTORE_WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 7).toString("base64")}`,
};

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
  ["serve --port 0 --database others.db", 1, notRoots],
  ["serve --port 0 --database others-link.db", 1, notRoots],
  ["restore backup.db --database others.db", 1, notRoots],
];

/** Words in capitals stand for the places above. Files are in the folder; new.db isn't there. */
const refused: readonly Refusal[] = [
  ["grow", 2, 'There is no command "grow". See plantstore --help.'],
  ["--port 1 serve", 2, "The command comes first"],
  ["srve", 2, "Did you mean serve?"],
  ["token crate alice", 2, "Did you mean token create?"],
  ["serve --prot 1", 2, "Did you mean --port?"],
  ["serve --color red", 2, "There is no flag --color. "],
  ["serve --port", 2, "--port needs a value. See plantstore serve --help."],

  ["serve --port 80000 --database new.db", 2, "--port must be"],
  ["serve --port SERVED-PORT --database new.db", 1, "is in use. Stop the other program"],
  ["serve --port 0 --host nope.invalid --database new.db", 1, "the host is not a name"],
  ["serve --port 0 --database lost.db", 1, "may hold plants"],
  ["serve --port 0 --database SERVED", 1, "another process is serving it already"],
  ["serve --port 0 --database FOLDER", 1, "Cannot open"],
  ["serve --port 0 --database songs.db", 1, "of another program"],
  ["serve --port 0 --database text.db", 1, "it is not a database"],
  // Not even root may create a file there.
  ...(process.platform === "linux"
    ? [["serve --port 0 --database /sys/plants.db", 1, "must be able to write"] as const]
    : []),
  ["serve --port 0 --database older.db", 1, "open it with 2.0 first"],
  ["serve --port 0 --database newer.db", 1, "knows schemas up to 5: use a newer version"],
  ["serve --port 0 --database OLDER-URL", 1, "open it with 2.0 first"],
  ["serve --port 0 --database REFUSED", 1, "the connection is refused"],
  ["serve --port 0 --database UNKNOWN", 1, "the host is not known"],
  ["serve --port 0 --database WRONG-PASSWORD", 1, "the user or the password is wrong"],
  ["serve --port 0 --database NO-DATABASE", 1, "there is no database"],
  ["serve --port 0 --database NO-RIGHTS", 1, "the role lacks rights"],
  ["serve --port 0 --database FEW-RIGHTS", 1, "the role lacks rights: DELETE on plants"],
  ["serve --port 0 --database READ-ONLY", 1, "takes no writes"],
  ["serve --port 0 --database SILENT --database-connect-timeout-ms 100", 1, "doesn't respond"],
  ["serve --jwt-issuer https://login.example", 2, "--jwt-audience is missing"],
  ["serve --tls-cert CERT", 2, "--tls-key is missing"],
  ["serve --tls-cert new.db --tls-key OTHER-KEY", 2, "cannot be read: there is no such file"],
  ["serve --tls-cert CERT --tls-key OTHER-KEY", 2, "are not a certificate and its private key"],
  ["token list --database new.db", 1, "there is no such file"],

  ["backup new.db --database new.db", 1, "there is no such file"],
  ["backup backup.db --database plants.db", 1, "exists already."],
  ["backup new/x.db --database plants.db", 1, "there is no such folder"],
  ["backup new.db --database FULL", 2, "For PostgreSQL, use pg_dump: docs/postgresql.md."],
  ["backup new.db --database zeroed.db", 1, "zeroed.db: it is corrupt"],

  ["restore text.db --database plants.db", 1, "text.db: it is not a database"],
  ["restore flipped.db --database plants.db", 1, "flipped.db: it is corrupt"],
  ["restore older.db --database plants.db", 1, "open it with 2.0 first"],
  ["restore songs.db --database plants.db", 1, "of another program"],
  ["restore backup.db --database SERVED", 1, "a service is using it (stop it first)"],

  ["copy plants.db new.db", 2, "URL must be such as postgres://user@host/database"],
  ["copy EMPTY new.db", 2, "FILE must be the path of a SQLite store"],
  ["copy SERVED EMPTY", 1, "a service is using it"],
  ["copy plants.db FULL", 1, "is not empty. Use a new"],

  ["token create", 2, "USER is missing. Usage: plantstore token create USER [flags]"],
  ["token create ", 2, "USER must be"],
  ["token create a --scope admin", 2, "--scope must be"],
  ["token revoke plant_secret", 2, "not the token itself"],
  // The last one has no zone.
  ...["soon", "0d", "2131-02-30", "2001-01-01", "2131-01-01T12:00:00"].map(
    (expiry) => [`token create a --expires ${expiry}`, 2, "--expires must be"] as const,
  ),

  ["PLANTSTORE_TOKEN= plants list", 4, "Set PLANTSTORE_TOKEN"],
  ["PLANTSTORE_TOKEN=somebody plants list", 4, "token create USER --database FILE"],
  ["plants list --limit many", 2, '"many"'],
  ["plants list --limit -1", 2, "--limit needs a value. If that is -1, write --limit=-1."],
  ["plants list --limit --json", 2, "--limit needs a value."],
  ["plants list --json=yes", 2, "--json takes no value."],
  ["plants list -x --tag", 2, "There is no flag -x."],
  ["plants list --search=", 2, "--search needs a word"],
  ["export --url http://127.0.0.1:1", 6, "refused. Is the service running?"],
  ["plants list --url SERVED-URL/plants", 1, "Check its address."],
  ["plants list --url https://127.0.0.1:SERVED-PORT", 6, "Is it SERVED-URL?"],
  ["plants get -7", 2, "Put -- before a word"],
  ["plants add royal fern", 2, '"fern" is unexpected. Put several words'],
  ["plants add Fern --id 7", 5, "7"],
  ["plants edit 7 --name=", 2, "name must"],
  ["plants edit 7", 2, "Nothing to change."],
  ["plants edit 7 --tag", 2, "--tag needs a value. See plantstore plants edit --help."],
  ["plants delete", 2, "Which plants?"],
  ["plants delete 7 007", 2, '"007"'],
  ["plants delete 7 --tag x", 2, "not both"],
  ["health --url SERVED-URL/plants", 6, "(status 401). Check its address."],
  ["import /dev/null/plants.csv", 1, "/dev/null/plants.csv"],
  ["export plants.xlsx", 2, "There is no export format .xlsx. Use .csv"],

  ["events --since yesterday", 2, "--since must be a time such as 30m, 2h or 7d"],
  ["events --after 12345", 1, "Run it again without --after to see the events"],
  ["PLANTSTORE_WEBHOOK_SECRET= events --forward HOOK --state new.db", 2, "SECRET is missing"],
  ["PLANTSTORE_WEBHOOK_SECRET=whsec_c2g= events --forward HOOK --state new.db", 2, "not valid"],
  ["events --forward ftp://example.com --state new.db", 2, "must be a URL with http"],
  [`events --forward https://u:${serverPassword}@x.test --state new.db`, 2, "without a user"],
  ["events --forward HOOK --state new.db --user ann", 2, "Leave out --user."],
  ["events --forward HOOK --state=", 2, "needs --state FILE"],
  ["events --forward HOOK --state new/x.db", 1, "Cannot write new/x.db: there is no such folder."],
  ["events --forward HOOK --state empty.state", 2, "is not a state file"],
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
    .replaceAll(/(?<![\w./-])[a-z-]+\.(?:db|state)\b/g, inFolder);

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

test.skipIf(isNotRoot)("root may use its own link, and another user's backup", async () => {
  for (const line of ["token list --database own-link.db", "restore others.db --database new.db"]) {
    expect(await runInProcess(fillIn(line).split(" "))).toMatchObject({ exitCode: 0 });
  }
});
