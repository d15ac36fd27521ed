/**
 * HAProxy in front of PostgreSQL servers, with a configuration of deploy/haproxy. It ends with this
 * process.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { runStatement } from "../../test/postgres-server.ts";
import { pickPorts } from "../../test/processes.ts";
import { findProgram, makeServerFolder, spawnServer } from "../system-servers.ts";

const haproxy = findProgram("haproxy");

/** Whether it's installed. */
export const hasHaproxy = haproxy !== null;

interface Server {
  readonly port: number;
  /** Of Patroni's REST API, if there is one. */
  readonly apiPort?: number;
}

/** Resolves to its port once `urlOf` that port leads to a server. */
export async function startDatabaseProxy(
  name: "patroni.cfg" | "postgresql.cfg",
  servers: readonly Server[],
  urlOf: (port: number) => string,
): Promise<number> {
  const [port = 0] = pickPorts(1);
  const folder = makeServerFolder();
  const [config, log] = [join(folder, name), join(folder, "log")];
  const original = readFileSync(join(import.meta.dir, "../../deploy/haproxy", name), "utf8");
  writeFileSync(config, substitute(original, port, servers));
  const child = spawnServer([haproxy ?? "haproxy", "-f", config], log);
  await waitFor(
    () => runStatement(urlOf(port), "SELECT 1").catch(() => undefined),
    () => child.exitCode !== null && readFileSync(log, "utf8"),
  );
  return port;
}

/** The configuration with other addresses, and nothing else changed. */
function substitute(config: string, port: number, servers: readonly Server[]): string {
  let count = 0;
  const changed = config
    .replace("bind 127.0.0.1:5432", `bind 127.0.0.1:${port}`)
    .replace(/^( +server \S+) \S+(.*)$/gm, (_, start, end) => {
      const server = servers[count++];
      const check = server?.apiPort === undefined ? "" : ` port ${server.apiPort}`;
      return `${start} 127.0.0.1:${server?.port}${check}${end}`;
    });
  if (count !== servers.length) throw new Error(`${count} servers in it, not ${servers.length}`);
  return changed;
}
