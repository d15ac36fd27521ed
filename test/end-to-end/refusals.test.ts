/**
 * Commands that cannot work: refused in one line that says why, without a secret, and nothing is
 * created or changed. Values that make no sense are in src/config.test.ts and src/cli/run.test.ts.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../command.ts";
import { fillStore } from "../filled-store.ts";
import { makeDatabase, serverPassword, type TestDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { serveHere } from "./running-service.ts";

const usage = 2;
const failure = 1;
const folder = makeTemporaryFolder();
const inFolder = (name: string) => join(folder.path, name);
const certificate = (name: string) => join(import.meta.dir, "../certificates", name);
const postgresAt = (place: string) => `postgres://postgres:${serverPassword}@${place}`;
const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });

let served: Awaited<ReturnType<typeof serveHere>>;
let empty: TestDatabase;
let full: TestDatabase;
let older: TestDatabase;
let places: Record<string, string>;

beforeAll(async () => {
  served = await serveHere();
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
  await fillStore(inFolder("plants.db"), 1);
  await fillStore(full.url, 1);
  await runInProcess(["backup", inFolder("plants.backup"), "--database", served.database]);
  // The log of a file that was lost.
  writeFileSync(inFolder("lost.db-wal"), "a plant");
  await Bun.$`mkfifo ${inFolder("pipe")}`;
  writeFileSync(inFolder("text.db"), "no database, whatever its name is".repeat(99));
  const bytes = readFileSync(inFolder("plants.db"));
  writeFileSync(inFolder("corrupt.db"), bytes.fill(0, bytes.length / 2));
  using songs = new Database(inFolder("songs.db"));
  songs.run("CREATE TABLE songs (title)");
  writeFileSync(
    inFolder("broken.pem"),
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
  );
  places = {
    FILE: inFolder("plants.db"),
    BACKUP: inFolder("plants.backup"),
    PIPE: inFolder("pipe"),
    TEXT: inFolder("text.db"),
    CORRUPT: inFolder("corrupt.db"),
    SONGS: inFolder("songs.db"),
    LOST: inFolder("lost.db"),
    FOLDER: folder.path,
    NEW: inFolder("new"),
    "NEW/x": inFolder("new/x"),
    SERVED: served.database,
    "SERVED-PORT": String(served.port),
    EMPTY: empty.url,
    FULL: full.url,
    "OLDER-URL": older.url,
    REFUSED: postgresAt("127.0.0.1:1/x"),
    UNKNOWN: postgresAt("nope.invalid/x"),
    SILENT: postgresAt(`127.0.0.1:${silent.port}/x`),
    "WRONG-PASSWORD": empty.url.replace("@", "-too@"),
    "NO-DATABASE": `${empty.url}-too`,
    OLDER: inFolder("older.db"),
    NEWER: inFolder("newer.db"),
    CERT: certificate("server.pem"),
    KEY: certificate("server-key.pem"),
    "OTHER-KEY": certificate("renewed-key.pem"),
    BROKEN: inFolder("broken.pem"),
  };
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await Promise.all([empty, full, older].map((database) => database.drop()));
  silent.stop(true);
  folder[Symbol.dispose]();
});

/** Words in capitals stand for the places above; a NEW one doesn't exist. */
const refused: readonly (readonly [line: string, exitCode: number, reason: string])[] = [
  ["serve --port 80000 --database NEW", usage, "--port must be"],
  ["serve --port SERVED-PORT --database NEW", failure, "is in use. Stop the other program"],
  ["serve --port 0 --host nope.invalid --database NEW", failure, "the host is not a name"],
  ["serve --port 0 --database LOST", failure, "may hold plants"],
  ["serve --port 0 --database SERVED", failure, "another process is serving it already"],
  ["serve --database oracle://x", usage, "of a PostgreSQL database"],
  ["serve --port 0 --database FOLDER", failure, "Cannot open"],
  ["serve --port 0 --database SONGS", failure, "of another program"],
  ["serve --port 0 --database TEXT", failure, "it is not a database"],
  ["serve --port 0 --database CORRUPT", failure, "it is corrupt"],
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
  ["serve --port 0 --database OLDER", failure, "open it with 2.0 first"],
  ["serve --port 0 --database NEWER", failure, "knows schemas up to 5: use a newer version"],
  ["serve --port 0 --database OLDER-URL", failure, "open it with 2.0 first"],
  ["serve --port 0 --database REFUSED", failure, "the connection is refused"],
  ["serve --port 0 --database UNKNOWN", failure, "the host is not known"],
  ["serve --port 0 --database WRONG-PASSWORD", failure, "the user or the password is wrong"],
  ["serve --port 0 --database NO-DATABASE", failure, "there is no database"],
  [
    "serve --port 0 --database SILENT --database-connect-timeout-ms 100",
    failure,
    "the host doesn't respond",
  ],
  ["token list --database OLDER", failure, "open it with 2.0 first"],
  ["backup NEW --database OLDER", failure, "older.db: its schema is 4, of version 1.0 or older"],
  ["copy OLDER EMPTY", failure, "open it with 2.0 first"],
  ["serve --jwt-issuer https://login.example", usage, "--jwt-audience is missing"],
  ["serve --jwt-audience plants", usage, "--jwt-issuer is missing"],
  ["serve --tls-cert CERT", usage, "--tls-key is missing"],
  ["serve --tls-key KEY", usage, "--tls-cert is missing"],
  ["serve --tls-cert NEW --tls-key KEY", usage, "cannot be read: there is no such file"],
  ["serve --tls-cert BROKEN --tls-key KEY", usage, "are not a certificate and its private key"],
  ["serve --tls-cert CERT --tls-key CERT", usage, "are not a certificate and its private key"],
  ["serve --tls-cert CERT --tls-key OTHER-KEY", usage, "are not a certificate and its private key"],
  ["token list --database NEW", failure, "there is no such file"],

  ["backup NEW --database NEW", failure, "there is no such file"],
  ["backup BACKUP --database FILE", failure, "exists already."],
  ["backup - --database FILE", usage, "FILE must be the path of a new file."],
  ["backup NEW/x --database FILE", failure, "there is no such folder"],
  ["backup NEW --database FULL", usage, "For PostgreSQL, use pg_dump: docs/postgresql.md."],
  ["backup NEW --database TEXT", failure, "it is not a database"],
  ["backup NEW --database CORRUPT", failure, "corrupt"],

  ["restore NEW --database NEW", failure, "there is no such file"],
  ["restore FOLDER --database NEW", failure, "it is a folder"],
  ["restore PIPE --database NEW", failure, "it is not a regular file"],
  ["restore TEXT --database NEW", failure, "it is not a database"],
  ["restore BACKUP --database SERVED", failure, "a service is using it (stop it first)"],
  ["restore BACKUP --database FULL", usage, "For PostgreSQL, use pg_restore: docs/postgresql.md."],

  ["copy FILE", usage, "URL is missing"],
  ["copy FILE NEW", usage, "URL must be such as postgres://user@host/database"],
  ["copy EMPTY NEW", usage, "FILE must be the path of a SQLite store"],
  ["copy NEW EMPTY", failure, "there is no such file"],
  ["copy SERVED EMPTY", failure, "a service is using it"],
  ["copy FILE FULL", failure, "is not empty. Use a new"],
  ["copy FILE OLDER-URL", failure, "open it with 2.0 first"],
  ["copy FILE REFUSED", failure, "the connection is refused"],
  [`copy FILE ${postgresAt("x/x?sslmode=x")}`, usage, "sslmode must be one of"],
];

const readFolder = () =>
  readdirSync(folder.path, { withFileTypes: true }).map((entry) => [
    entry.name,
    entry.isFile() && Bun.hash(readFileSync(inFolder(entry.name))),
  ]);

test.each(refused)("plantstore %s", async (line, exitCode, reason) => {
  const before = readFolder();
  const finished = await runInProcess(line.split(" ").map((word) => places[word] ?? word));
  expect(finished).toMatchObject({ exitCode, out: "" });
  expect(finished.errors).toMatch(/^plantstore: .+\n$/);
  expect(finished.errors).toContain(reason);
  expect(finished.errors).not.toContain(serverPassword);
  expect(finished.errors).not.toContain("PRIVATE");
  expect(readFolder()).toEqual(before);
});
