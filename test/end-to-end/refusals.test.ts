/**
 * Commands that cannot work: refused in one line that says why, without a secret, and nothing is
 * created. Values that make no sense are in src/config.test.ts and src/cli/run.test.ts.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fillStore } from "../filled-store.ts";
import { makeDatabase, serverPassword, type TestDatabase } from "../postgres-server.ts";
import { skipsUnless } from "../skipping.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { keptPath } from "../upgrades/kept-data.ts";
import { type RunningService, realProgram, runProgram, startService } from "./running-service.ts";

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
let places: Record<string, string>;

beforeAll(async () => {
  served = await startService();
  [empty, full, older] = await Promise.all([makeDatabase(), makeDatabase(), makeDatabase()]);
  await older.query(await Bun.file(keptPath("0.5.0", "postgres.sql")).text());
  await fillStore(inFolder("plants.db"), 1);
  await fillStore(inFolder("own.db"), 1);
  await fillStore(full.url, 1);
  await runProgram(["backup", inFolder("plants.backup"), "--database", served.database]);
  symlinkSync(inFolder("plants.db"), inFolder("link.db"));
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
    FOLDER: folder.path,
    OWN: inFolder("own.db"),
    NEW: inFolder("new"),
    "NEW/x": inFolder("new/x"),
    SERVED: served.database,
    "SERVED-PORT": String(served.port),
    EMPTY: empty.url,
    FULL: full.url,
    OLDER: older.url,
    CERT: certificate("server.pem"),
    KEY: certificate("server-key.pem"),
    "OTHER-KEY": certificate("renewed-key.pem"),
    BROKEN: inFolder("broken.pem"),
  };
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
  await Promise.all([empty, full, older].map((database) => database.drop()));
  folder[Symbol.dispose]();
});

/** Words in capitals stand for the places above; those called NEW do not exist. */
const refused: readonly (readonly [line: string, exitCode: number, reason: string])[] = [
  ["serve --port 80000 --database NEW", usage, "--port must be"],
  ["serve --host nope.invalid --database OWN", failure, "nope.invalid"],
  ["serve --host 999.9.9.9 --database OWN", failure, "the host is not a name or address"],
  ["serve --port SERVED-PORT --database OWN", failure, "is in use. Stop the other program"],
  ["serve --port 0 --database SERVED", failure, "another process is serving it already"],
  ['serve --database "plants.db"', usage, "without quotes"],
  ["serve --database oracle://x", usage, "of a PostgreSQL database"],
  ["serve --port 0 --database /dev/null/x/plants.db", failure, "/dev/null/x/plants.db"],
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
  ["serve --trace-endpoint localhost:4318", usage, "--trace-endpoint must"],
  ["serve --trace-ratio 1.1", usage, "--trace-ratio must be a number from 0 to 1"],
  ["serve --trace-headers a=b --database NEW", usage, "need --trace-endpoint"],
  ["serve --trace-ratio 0.1 --database NEW", usage, "--trace-ratio need --trace-endpoint"],
  ["serve --jwt-issuer https://login.example", usage, "--jwt-audience is missing"],
  ["serve --jwt-audience plants", usage, "--jwt-issuer is missing"],
  ["serve --jwt-jwks-url https://login.example/keys", usage, "--jwt-issuer is missing"],
  ["serve --tls-cert CERT", usage, "--tls-key is missing"],
  ["serve --tls-key KEY", usage, "--tls-cert is missing"],
  ["serve --tls-cert NEW --tls-key KEY", usage, "cannot be read: there is no such file"],
  ["serve --tls-cert FOLDER --tls-key KEY", usage, "cannot be read: it is a folder"],
  ["serve --tls-cert BROKEN --tls-key KEY", usage, "holds no certificate"],
  ["serve --tls-cert CERT --tls-key CERT", usage, "holds no private key"],
  ["serve --tls-cert CERT --tls-key OTHER-KEY", usage, "is not the key of"],
  ["token list --database NEW", failure, "there is no such file"],

  ["backup", usage, "FILE|- is missing"],
  ["backup - --database NEW", failure, "there is no such file"],
  ["backup - --database NEW/x", failure, "there is no such folder"],
  ["backup - --force --database FILE", usage, "--force is for a file"],
  ["backup NEW --database NEW", failure, "there is no such file"],
  ["backup FILE --database FILE --force", usage, "is the database itself"],
  ["backup BACKUP --database FILE", failure, "exists already. With --force it is replaced."],
  ["backup SERVED --database FILE --force", failure, "exists already, and is not a backup"],
  ["backup FOLDER --database FILE --force", failure, "exists already, and is not a backup"],
  ["backup NEW/x --database FILE", failure, "there is no such folder"],
  ["backup NEW --database EMPTY", failure, "it holds no plant store yet"],
  ["backup NEW --database TEXT", failure, "it is not a database"],
  ["backup NEW --database oracle://db", usage, "of a PostgreSQL database"],

  ["restore - --database NEW", usage, "restored from a file"],
  ["restore NEW --database NEW", failure, "there is no such file"],
  ["restore NEW --database SERVED", failure, "there is no such file"],
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
  ["restore BACKUP --database oracle://db", usage, "of a PostgreSQL database"],
  [`restore BACKUP --database ${nowhere}`, failure, "nothing listens there"],

  ["copy --from FILE", usage, "--to is missing; it must be the path of a file"],
  ["copy --to NEW", usage, "--from is missing"],
  ["copy --from FILE --to FILE", usage, "the same file"],
  ["copy --from FILE --to LINK", usage, "the same file"],
  ["copy --from EMPTY --to NEW", failure, "it holds no plant store yet"],
  ["copy --from NEW --to EMPTY", failure, "there is no such file"],
  ["copy --from SERVED --to NEW", failure, "a service is using it"],
  ["copy --from FILE --to SERVED --force", failure, "a service is using it"],
  ["copy --from FILE --to OWN", failure, "exists already. With --force"],
  ["copy --from FILE --to TEXT --force", failure, "only a plant store is replaced"],
  ["copy --from FILE --to oracle://db", usage, "of a PostgreSQL database"],
  [`copy --from FILE --to ${nowhere}`, failure, "nothing listens there"],
  [`copy --from FILE --to ${nowhere}?sslmode=x`, usage, "sslmode must be one of"],
];

test.each(refused)("plantstore %s", async (line, exitCode, reason) => {
  const finished = await runProgram(line.split(" ").map((word) => places[word] ?? word));
  expect(finished).toMatchObject({ exitCode, out: "" });
  expect(finished.errors).toMatch(/^plantstore: .+\n$/);
  expect(finished.errors).toContain(reason);
  expect(finished.errors).not.toContain(serverPassword);
  expect(finished.errors).not.toContain("PRIVATE");
  expect(existsSync(inFolder("new"))).toBe(false);
  expect(readdirSync(folder.path).filter((name) => name.includes(".partial"))).toEqual([]);
});

test.each<[why: string, args: readonly string[], reason: string, layOut: (path: string) => void]>([
  ["the port is in use", ["--port", "SERVED-PORT"], "is in use", () => {}],
  [
    "the host is unknown",
    ["--port", "0", "--host", "nope.invalid"],
    "the host is not a name",
    () => {},
  ],
  [
    "the log of a lost file is there",
    ["--port", "0"],
    "may hold plants",
    (path) => writeFileSync(`${path}-wal`, "a plant"),
  ],
  [
    "its lock is a link",
    ["--port", "0"],
    "symbolic links",
    (path) => symlinkSync(inFolder("text"), `${path}-serving`),
  ],
])("a start that is refused because %s leaves no file behind", async (_, args, reason, layOut) => {
  const own = makeTemporaryFolder();
  const database = join(own.path, "plants.db");
  layOut(database);
  const before = readdirSync(own.path);
  const words = args.map((word) => places[word] ?? word);
  const refused = await runProgram(["serve", ...words, "--database", database]);
  expect(refused).toMatchObject({ exitCode: failure, out: "" });
  expect(refused.errors).toContain(reason);
  expect(readdirSync(own.path)).toEqual(before);
  own[Symbol.dispose]();
});

test("an environment variable that is empty is named", async () => {
  const { exitCode, errors } = await runProgram(["token", "list"], { PLANTSTORE_DATABASE: "" });
  expect(exitCode).toBe(usage);
  expect(errors).toMatch(/^plantstore: PLANTSTORE_DATABASE is empty; it must be .+\.\n$/);
});

test("an older PostgreSQL database is as it was after a refused restore", async () => {
  expect(await older.query("SELECT version FROM plantstore_schema")).toEqual([{ version: "5" }]);
});

const canMount =
  Bun.which("unshare") !== null &&
  Bun.spawnSync(["unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp"]).success;

describe.skipIf(skipsUnless(canMount, "mounting needs root"))(
  "on a disk that is mounted read-only",
  () => {
    const disk = inFolder("disk");
    const [store, missing] = [join(disk, "plants.db"), join(disk, "new", "plants.db")];
    beforeAll(() => fillStore(store, 1));

    /** In a mount namespace of its own, so that the mount ends with the process. */
    function runReadOnly(args: readonly string[]) {
      const mounting = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"';
      const command = ["sh", "-c", mounting, disk, process.execPath, realProgram, ...args];
      return Bun.spawnSync(["unshare", "-m", ...command], { cwd: folder.path });
    }

    test.each([
      [["serve", "--port", "0", "--database", store]],
      [["serve", "--port", "0", "--database", missing]],
      [["token", "create", "ada", "--database", store]],
      [["token", "list", "--database", store]],
      [["backup", join(disk, "plants.backup"), "--database", store]],
      [["backup", inFolder("other.backup"), "--database", store]],
      [["restore", inFolder("plants.backup"), "--database", store, "--force"]],
      [["restore", inFolder("plants.backup"), "--database", missing]],
      [["copy", "--from", inFolder("none.db"), "--to", missing]],
    ])("%p", (args) => {
      const { exitCode, stdout, stderr } = runReadOnly(args);
      expect([exitCode, stdout.toString()]).toEqual([1, ""]);
      expect(stderr.toString()).toMatch(
        /^plantstore: Cannot (?:open|write) [^\n]+ read-only[^\n]*\.\n$/,
      );
    });
  },
);
