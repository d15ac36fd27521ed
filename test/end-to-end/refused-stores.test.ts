/**
 * Stores that `serve`, `backup`, `restore` and `copy` can't use, and addresses, certificates and
 * copies that they can't: refused in one line that says why. Mistakes on the command line are in
 * refusals.test.ts.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  lchownSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../../testing/command.ts";
import { fillStore } from "../../testing/filled-store.ts";
import { makeDatabase, serverPassword } from "../../testing/postgres-server.ts";
import { serveHere } from "../../testing/running-service.ts";
import { skipsOutsideLinux, skipsUnless } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { expectRefusal, type Refusal } from "./expect-refusal.ts";

const folder = makeTemporaryFolder();
const inFolder = (name: string) => join(folder.path, name);
/** A copy, because the path of this project may have a space, which ends a command's word. */
const certificate = (name: string) => {
  const copy = inFolder(name);
  copyFileSync(join(import.meta.dir, "../certificates", name), copy);
  return copy;
};

/** It doesn't exist, and no command here makes it. */
const newFile = inFolder("new.db");
const newFileInNewFolder = inFolder("new/x.db");

const store = inFolder("plants.db");
await fillStore(store, 900);

const backup = inFolder("backup.db");
await runInProcess(["backup", backup, "--database", store]);

const backupWithFlippedLetter = inFolder("flipped.db");
const bytes = readFileSync(backup);
bytes.write("f", bytes.indexOf("Fern 700"));
writeFileSync(backupWithFlippedLetter, bytes);

const halfZeroedStore = inFolder("zeroed.db");
writeFileSync(halfZeroedStore, bytes.fill(0, bytes.length / 2));

/** Its schema is that of 1.0. */
const olderStore = inFolder("older.db");
const newerStore = inFolder("newer.db");
const storeOfSongs = inFolder("songs.db");
await fillStore(olderStore, 1);
copyFileSync(olderStore, newerStore);
runSql(olderStore, "PRAGMA user_version = 4");
runSql(newerStore, "PRAGMA user_version = 6");
runSql(storeOfSongs, "CREATE TABLE songs (title)");

const textFile = inFolder("text.db");
writeFileSync(textFile, "no database, whatever its name is".repeat(99));

/** Only its log is left. */
const lostStore = inFolder("lost.db");
writeFileSync(`${lostStore}-wal`, "a plant");

// A service that is refused leaves a lock, as any service does. It is there already, so that no
// file may appear.
for (const path of [olderStore, newerStore, store, storeOfSongs, textFile]) {
  writeFileSync(`${path}-serving`, "");
}

function runSql(path: string, sql: string): void {
  using file = new Database(path);
  file.run(sql);
}

/** A service that runs, and uses its store and its port. */
const service = await serveHere();

const emptyDatabase = await makeDatabase();
const database = await makeDatabase();
await fillStore(database.url, 1);

/** Its schema is that of 1.0. */
const olderDatabase = await makeDatabase();
await fillStore(olderDatabase.url, 1);
await olderDatabase.query("UPDATE plantstore_schema SET version = 6");

/** Accepts connections, and never sends a byte. */
const silentServer = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });

const login = `LOGIN PASSWORD '${serverPassword}'`;
await database.query(`
  CREATE ROLE refused_rightless ${login};
  CREATE ROLE refused_partial ${login};
  GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO refused_partial;
  REVOKE DELETE ON plants FROM refused_partial;
  CREATE ROLE refused_reader ${login};
  ALTER ROLE refused_reader SET default_transaction_read_only = on
`);
const asRole = (role: string, url: string) => url.replace("//postgres:", `//${role}:`);

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await database.query(`
    DROP OWNED BY refused_rightless, refused_partial, refused_reader;
    DROP ROLE refused_rightless, refused_partial, refused_reader
  `);
  await Promise.all([emptyDatabase.drop(), database.drop(), olderDatabase.drop()]);
  silentServer.stop(true);
  folder[Symbol.dispose]();
});

const expectRefused = (refusal: Refusal) =>
  expectRefusal(refusal, { folder: folder.path, env: { PLANTSTORE_DATABASE: newFile } });

interface Case extends Refusal {
  /** The end of the test's name. */
  readonly problem: string;
}

describe("serve doesn't start", () => {
  const cases: readonly Case[] = [
    {
      problem: "on a port that doesn't exist",
      command: `serve --port 80000 --database ${newFile}`,
      exitCode: 2,
      reason: "--port must be",
    },
    {
      problem: "on a port that another program uses",
      command: `serve --port ${service.port} --database ${newFile}`,
      exitCode: 1,
      reason: "is in use. Stop the other program",
    },
    {
      problem: "at a host that is unknown",
      command: `serve --port 0 --host nope.invalid --database ${newFile}`,
      exitCode: 1,
      reason: "the host is not a name",
    },
    {
      problem: "with an issuer of JWTs but no audience",
      command: "serve --jwt-issuer https://login.example",
      exitCode: 2,
      reason: "--jwt-audience is missing",
    },
    {
      problem: "with a certificate but no key",
      command: `serve --tls-cert ${certificate("server.pem")}`,
      exitCode: 2,
      reason: "--tls-key is missing",
    },
    {
      problem: "with a certificate that is missing",
      command: `serve --tls-cert ${newFile} --tls-key ${certificate("renewed-key.pem")}`,
      exitCode: 2,
      reason: "cannot be read: there is no such file",
    },
    {
      problem: "with a certificate and the key of another one",
      command: `serve --tls-cert ${certificate("server.pem")} --tls-key ${certificate("renewed-key.pem")}`,
      exitCode: 2,
      reason: "are not a certificate and its private key",
    },
  ];
  for (const { problem, ...refusal } of cases) test(problem, () => expectRefused(refusal));
});

describe("serve refuses a SQLite store", () => {
  const cases: readonly Case[] = [
    {
      problem: "of which only the log is left",
      command: `serve --port 0 --database ${lostStore}`,
      exitCode: 1,
      reason: "may hold plants",
    },
    {
      problem: "that another service uses",
      command: `serve --port 0 --database ${service.database}`,
      exitCode: 1,
      reason: "another process is serving it already",
    },
    {
      problem: "that is a folder",
      command: `serve --port 0 --database ${folder.path}`,
      exitCode: 1,
      reason: "Cannot open",
    },
    {
      problem: "of another program",
      command: `serve --port 0 --database ${storeOfSongs}`,
      exitCode: 1,
      reason: "of another program",
    },
    {
      problem: "that is a text file",
      command: `serve --port 0 --database ${textFile}`,
      exitCode: 1,
      reason: "it is not a database",
    },
    {
      problem: "with the schema of 1.0",
      command: `serve --port 0 --database ${olderStore}`,
      exitCode: 1,
      reason: "open it with 2.0 first",
    },
    {
      problem: "with the schema of a newer version",
      command: `serve --port 0 --database ${newerStore}`,
      exitCode: 1,
      reason: "knows schemas up to 5: use a newer version",
    },
  ];
  for (const { problem, ...refusal } of cases) test(problem, () => expectRefused(refusal));

  // Not even root may create a file in /sys.
  test.skipIf(skipsOutsideLinux())("in a folder that it can't write to", () =>
    expectRefused({
      command: "serve --port 0 --database /sys/plants.db",
      exitCode: 1,
      reason: "must be able to write",
    }),
  );
});

describe("serve refuses a PostgreSQL database", () => {
  const addressStart = `postgres://postgres:${serverPassword}`;
  const cases: readonly Case[] = [
    {
      problem: "on a server that isn't there",
      command: `serve --port 0 --database ${addressStart}@127.0.0.1:1/x`,
      exitCode: 1,
      reason: "the connection is refused",
    },
    {
      problem: "on a host that is unknown",
      command: `serve --port 0 --database ${addressStart}@nope.invalid/x`,
      exitCode: 1,
      reason: "the host is not known",
    },
    {
      problem: "on a server that doesn't respond",
      command: `serve --port 0 --database ${addressStart}@127.0.0.1:${silentServer.port}/x --database-connect-timeout-ms 100`,
      exitCode: 1,
      reason: "doesn't respond",
    },
    {
      problem: "with a wrong password",
      command: `serve --port 0 --database ${emptyDatabase.url.replace("@", "-too@")}`,
      exitCode: 1,
      reason: "the user or the password is wrong",
    },
    {
      problem: "that doesn't exist",
      command: `serve --port 0 --database ${emptyDatabase.url}-too`,
      exitCode: 1,
      reason: "there is no database",
    },
    {
      problem: "where its role may not create the tables",
      command: `serve --port 0 --database ${asRole("refused_rightless", emptyDatabase.url)}`,
      exitCode: 1,
      reason: "the role lacks rights",
    },
    {
      problem: "where its role may not delete plants",
      command: `serve --port 0 --database ${asRole("refused_partial", database.url)}`,
      exitCode: 1,
      reason: "the role lacks rights: DELETE on plants",
    },
    {
      problem: "that takes no writes",
      command: `serve --port 0 --database ${asRole("refused_reader", database.url)}`,
      exitCode: 1,
      reason: "takes no writes",
    },
    {
      problem: "with the schema of 1.0",
      command: `serve --port 0 --database ${olderDatabase.url}`,
      exitCode: 1,
      reason: "open it with 2.0 first",
    },
  ];
  for (const { problem, ...refusal } of cases) test(problem, () => expectRefused(refusal));
});

test("token list doesn't make a store that is missing", () =>
  expectRefused({
    command: `token list --database ${newFile}`,
    exitCode: 1,
    reason: "there is no such file",
  }));

describe("backup refuses", () => {
  const cases: readonly Case[] = [
    {
      problem: "a store that is missing",
      command: `backup ${newFile} --database ${newFile}`,
      exitCode: 1,
      reason: "there is no such file",
    },
    {
      problem: "to replace a file",
      command: `backup ${backup} --database ${store}`,
      exitCode: 1,
      reason: "exists already.",
    },
    {
      problem: "to make a folder",
      command: `backup ${newFileInNewFolder} --database ${store}`,
      exitCode: 1,
      reason: "there is no such folder",
    },
    {
      problem: "a PostgreSQL database, and points at pg_dump",
      command: `backup ${newFile} --database ${database.url}`,
      exitCode: 2,
      reason: "For PostgreSQL, use pg_dump: docs/postgresql.md.",
    },
    {
      problem: "a store that is corrupt",
      command: `backup ${newFile} --database ${halfZeroedStore}`,
      exitCode: 1,
      reason: "zeroed.db: it is corrupt",
    },
  ];
  for (const { problem, ...refusal } of cases) test(problem, () => expectRefused(refusal));
});

describe("restore refuses", () => {
  const cases: readonly Case[] = [
    {
      problem: "a text file",
      command: `restore ${textFile} --database ${store}`,
      exitCode: 1,
      reason: "text.db: it is not a database",
    },
    {
      problem: "a backup in which a single letter has changed",
      command: `restore ${backupWithFlippedLetter} --database ${store}`,
      exitCode: 1,
      reason: "flipped.db: it is corrupt",
    },
    {
      problem: "a backup with the schema of 1.0",
      command: `restore ${olderStore} --database ${store}`,
      exitCode: 1,
      reason: "open it with 2.0 first",
    },
    {
      problem: "a database of another program",
      command: `restore ${storeOfSongs} --database ${store}`,
      exitCode: 1,
      reason: "of another program",
    },
    {
      problem: "to replace a store that a service uses",
      command: `restore ${backup} --database ${service.database}`,
      exitCode: 1,
      reason: "a service is using it (stop it first)",
    },
  ];
  for (const { problem, ...refusal } of cases) test(problem, () => expectRefused(refusal));
});

describe("copy refuses", () => {
  const cases: readonly Case[] = [
    {
      problem: "a target that isn't a PostgreSQL database",
      command: `copy ${store} ${newFile}`,
      exitCode: 2,
      reason: "URL must be such as postgres://user@host/database",
    },
    {
      problem: "a source that isn't a SQLite store",
      command: `copy ${emptyDatabase.url} ${newFile}`,
      exitCode: 2,
      reason: "FILE must be the path of a SQLite store",
    },
    {
      problem: "a store that a service uses",
      command: `copy ${service.database} ${emptyDatabase.url}`,
      exitCode: 1,
      reason: "a service is using it",
    },
    {
      problem: "a target that isn't empty",
      command: `copy ${store} ${database.url}`,
      exitCode: 1,
      reason: "is not empty. Use a new",
    },
  ];
  for (const { problem, ...refusal } of cases) test(problem, () => expectRefused(refusal));
});

const isNotRoot = skipsUnless(process.getuid?.() === 0, "needs root");

/** Root opens only its own stores, whatever links another user has made. */
describe.skipIf(isNotRoot)("root", () => {
  const othersStore = inFolder("others.db");
  const othersLinkToRootsStore = inFolder("others-link.db");
  const ownLink = inFolder("own-link.db");
  const otherUser = 1234;

  const isOthers =
    "it belongs to user 1234, not to root (run the command as that user: " +
    "sudo -u '#1234' plantstore …).";

  beforeAll(async () => {
    chmodSync(folder.path, 0o755);
    await fillStore(othersStore, 3);
    symlinkSync(store, othersLinkToRootsStore);
    symlinkSync(store, ownLink);
    lchownSync(othersStore, otherUser, otherUser);
    lchownSync(othersLinkToRootsStore, otherUser, otherUser);
  });

  test("can't serve another user's store", () =>
    expectRefused({
      command: `serve --port 0 --database ${othersStore}`,
      exitCode: 1,
      reason: isOthers,
    }));

  test("can't serve its own store by way of another user's link", () =>
    expectRefused({
      command: `serve --port 0 --database ${othersLinkToRootsStore}`,
      exitCode: 1,
      reason: isOthers,
    }));

  test("can't replace another user's store", () =>
    expectRefused({
      command: `restore ${backup} --database ${othersStore}`,
      exitCode: 1,
      reason: isOthers,
    }));

  test("may use its own link", async () => {
    const listed = await runInProcess(["token", "list", "--database", ownLink]);

    expect(listed.exitCode).toBe(0);
  });

  test("may restore another user's backup", async () => {
    const restored = await runInProcess(["restore", othersStore, "--database", inFolder("own.db")]);

    expect(restored.exitCode).toBe(0);
  });
});
