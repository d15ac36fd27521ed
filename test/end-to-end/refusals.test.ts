/**
 * Commands that cannot work: refused in one line that says why, without a secret, and nothing is
 * created. Values that make no sense are in src/config.test.ts and src/cli/run.test.ts.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fillStore } from "../filled-store.ts";
import { makeDatabase, serverPassword, type TestDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { keptPath } from "../upgrades/kept-data.ts";
import { type RunningService, runProgram, startService } from "./running-service.ts";

setDefaultTimeout(120_000);

const usage = 2;
const failure = 1;
const folder = makeTemporaryFolder();
const inFolder = (name: string) => join(folder.path, name);
const certificate = (name: string) => join(import.meta.dir, "../certificates", name);
const nowhere = `postgres://u:${serverPassword}@127.0.0.1:1/x`;

let served: RunningService;
let empty: TestDatabase;
let full: TestDatabase;
let older: TestDatabase;
let beforeOne: TestDatabase;
let places: Record<string, string>;

beforeAll(async () => {
  served = await startService();
  [empty, full, older, beforeOne] = await Promise.all([
    makeDatabase(),
    makeDatabase(),
    makeDatabase(),
    makeDatabase(),
  ]);
  for (const database of [older, beforeOne]) {
    await database.query(await Bun.file(keptPath("1.0.0", "postgres.sql")).text());
  }
  // The schemas of 0.5.
  await beforeOne.query("UPDATE plantstore_schema SET version = 5");
  await fillStore(inFolder("five.db"), 1);
  const five = new Database(inFolder("five.db"));
  five.run("PRAGMA user_version = 3");
  five.close();
  // The lock that a service leaves.
  writeFileSync(inFolder("five.db-serving"), "");
  await fillStore(inFolder("plants.db"), 1);
  await fillStore(inFolder("own.db"), 1);
  await fillStore(full.url, 1);
  await runProgram(["backup", inFolder("plants.backup"), "--database", served.database]);
  symlinkSync(inFolder("plants.db"), inFolder("link.db"));
  // The log of a file that was lost.
  writeFileSync(inFolder("lost.db-wal"), "a plant");
  await Bun.$`mkfifo ${inFolder("pipe")}`;
  writeFileSync(inFolder("text"), "no database, whatever its name is".repeat(99));
  writeFileSync(
    inFolder("broken.pem"),
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
  );
  places = {
    FILE: inFolder("plants.db"),
    LINK: inFolder("link.db"),
    BACKUP: inFolder("plants.backup"),
    PIPE: inFolder("pipe"),
    TEXT: inFolder("text"),
    LOST: inFolder("lost.db"),
    FOLDER: folder.path,
    OWN: inFolder("own.db"),
    NEW: inFolder("new"),
    "NEW/x": inFolder("new/x"),
    SERVED: served.database,
    "SERVED-PORT": String(served.port),
    EMPTY: empty.url,
    FULL: full.url,
    OLDER: older.url,
    "FIVE-URL": beforeOne.url,
    FIVE: inFolder("five.db"),
    CERT: certificate("server.pem"),
    KEY: certificate("server-key.pem"),
    "OTHER-KEY": certificate("renewed-key.pem"),
    BROKEN: inFolder("broken.pem"),
  };
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await Promise.all([empty, full, older, beforeOne].map((database) => database.drop()));
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
  ["serve --port 0 --database FIVE", failure, "upgrade to 1.0 first"],
  ["serve --port 0 --database FIVE-URL", failure, "upgrade to 1.0 first"],
  ["token list --database FIVE", failure, "upgrade to 1.0 first"],
  ["backup NEW --database FIVE", failure, "upgrade to 1.0 first"],
  ["copy --from FIVE-URL --to NEW", failure, "upgrade to 1.0 first"],
  ["serve --jwt-issuer https://login.example", usage, "--jwt-audience is missing"],
  ["serve --jwt-audience plants", usage, "--jwt-issuer is missing"],
  ["serve --tls-cert CERT", usage, "--tls-key is missing"],
  ["serve --tls-key KEY", usage, "--tls-cert is missing"],
  ["serve --tls-cert NEW --tls-key KEY", usage, "cannot be read: there is no such file"],
  ["serve --tls-cert BROKEN --tls-key KEY", usage, "holds no certificate"],
  ["serve --tls-cert CERT --tls-key CERT", usage, "holds no private key"],
  ["serve --tls-cert CERT --tls-key OTHER-KEY", usage, "is not the key of"],
  ["token list --database NEW", failure, "there is no such file"],

  ["backup - --database NEW", failure, "there is no such file"],
  ["backup - --force --database FILE", usage, "--force is for a file"],
  ["backup NEW --database NEW", failure, "there is no such file"],
  ["backup FILE --database FILE --force", usage, "is the database itself"],
  ["backup BACKUP --database FILE", failure, "exists already. With --force it is replaced."],
  ["backup SERVED --database FILE --force", failure, "exists already, and is not a backup"],
  ["backup NEW/x --database FILE", failure, "there is no such folder"],
  ["backup NEW --database EMPTY", failure, "it holds no plant store yet"],
  ["backup NEW --database TEXT", failure, "it is not a database"],

  ["restore - --database NEW", usage, "restored from a file"],
  ["restore NEW --database NEW", failure, "there is no such file"],
  ["restore FOLDER --database NEW", failure, "it is a folder"],
  ["restore FILE --database NEW", failure, "it is a store itself, not a backup"],
  ["restore PIPE --database NEW", failure, "it is not a backup of Plant Store, or not complete"],
  ["restore BACKUP --database BACKUP --force", usage, "cannot be restored into itself"],
  [
    "restore BACKUP --database FILE",
    failure,
    "With --force it is replaced, and kept under another",
  ],
  ["restore BACKUP --database SERVED --force", failure, "a service is using it (stop it first)"],
  ["restore BACKUP --database TEXT --force", failure, "only a plant store is replaced"],
  ["restore BACKUP --database FULL --force", failure, "is not empty. Use a new"],
  ["restore BACKUP --database OLDER", failure, "use the version"],
  [`restore BACKUP --database ${nowhere}`, failure, "the connection is refused"],

  ["copy --from FILE", usage, "--to is missing; it must be the path of a file"],
  ["copy --from FILE --to LINK", usage, "the same file"],
  ["copy --from EMPTY --to NEW", failure, "it holds no plant store yet"],
  ["copy --from NEW --to EMPTY", failure, "there is no such file"],
  ["copy --from SERVED --to NEW", failure, "a service is using it"],
  ["copy --from FILE --to SERVED --force", failure, "a service is using it"],
  ["copy --from FILE --to OWN", failure, "exists already. With --force"],
  [`copy --from FILE --to ${nowhere}?sslmode=x`, usage, "sslmode must be one of"],
];

test.each(refused)("plantstore %s", async (line, exitCode, reason) => {
  const before = readdirSync(folder.path);
  const finished = await runProgram(line.split(" ").map((word) => places[word] ?? word));
  expect(finished).toMatchObject({ exitCode, out: "" });
  expect(finished.errors).toMatch(/^plantstore: .+\n$/);
  expect(finished.errors).toContain(reason);
  expect(finished.errors).not.toContain(serverPassword);
  expect(finished.errors).not.toContain("PRIVATE");
  expect(readdirSync(folder.path)).toEqual(before);
});

test("an environment variable that is empty is named", async () => {
  const { exitCode, errors } = await runProgram(["token", "list"], { PLANTSTORE_DATABASE: "" });
  expect(exitCode).toBe(usage);
  expect(errors).toMatch(/^plantstore: PLANTSTORE_DATABASE is empty; it must be .+\.\n$/);
});

test("an older PostgreSQL database is as it was after a refused restore", async () => {
  expect(await older.query("SELECT version FROM plantstore_schema")).toEqual([{ version: "6" }]);
});
