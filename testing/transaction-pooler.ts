/** The system's PgBouncer in transaction mode, in front of a database of a test's server. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runStatement } from "./postgres-server.ts";
import { pickPorts } from "./processes.ts";
import { waitFor } from "./running-service.ts";
import { skipsUnless } from "./skipping.ts";
import { findProgram, makeServerFolder, spawnServer } from "./system-servers.ts";

const pgbouncer = findProgram("pgbouncer");

/** For `skipIf`. */
export function skipsWithoutPooler(): boolean {
  return skipsUnless(pgbouncer !== null, "not installed: pgbouncer");
}

export async function startPooler(
  url: string,
  port = pickPorts(1)[0] ?? 0,
  others: Readonly<Record<string, string | number>> = {},
) {
  const { username, password, port: serverPort } = new URL(url);
  const folder = makeServerFolder();
  const settings = {
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: "",
    auth_type: "any",
    pool_mode: "transaction",
    // Nothing of a session is left for the next transaction.
    server_reset_query: "DISCARD ALL",
    server_reset_query_always: 1,
    // Two transactions in a row rarely share a connection.
    server_round_robin: 1,
    server_login_retry: 1,
    ...others,
  };
  const server = `host=127.0.0.1 port=${serverPort} user=${username} password=${password}`;
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const file = join(folder, "pgbouncer.ini");
  writeFileSync(file, `[databases]\n* = ${server}\n[pgbouncer]\n${lines.join("\n")}\n`);
  const child = spawnServer([pgbouncer ?? "pgbouncer", file], join(folder, "log"));
  const ownUrl = url.replace(/:\d+\//, `:${port}/`);
  await waitFor(() => runStatement(ownUrl, "SELECT 1").catch(() => undefined));
  return {
    url: ownUrl,
    pid: child.pid,
    exited: child.exited,
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
