/** HAProxy in front of PostgreSQL servers, with a configuration of deploy/haproxy. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runStatement } from "../../testing/postgres-server.ts";
import { pickPorts } from "../../testing/processes.ts";
import { waitFor } from "../../testing/running-service.ts";
import { findProgram, makeServerFolder, spawnServer } from "../../testing/system-servers.ts";

const haproxy = findProgram("haproxy");
/** Whether it's installed. */
export const hasHaproxy = haproxy !== null;

/** Resolves to its port once `urlOf` that port leads to a primary. It ends with this process. */
export async function startDatabaseProxy(
  name: "patroni.cfg" | "postgresql.cfg",
  /** `apiPort` is of Patroni's REST API. */
  servers: readonly { readonly port: number; readonly apiPort?: number }[],
  urlOf: (port: number) => string,
): Promise<number> {
  const [port = 0] = pickPorts(1);
  const folder = makeServerFolder();
  const [config, log] = [join(folder, name), join(folder, "log")];
  const shipped = readFileSync(join(import.meta.dir, "../../deploy/haproxy", name), "utf8");
  // Other addresses, and nothing else changed.
  const left = [...servers];
  const changed = shipped
    .replace("bind 127.0.0.1:5432", `bind 127.0.0.1:${port}`)
    .replaceAll(/^( +server \S+) \S+/gm, (_, start) => {
      const server = left.shift();
      const check = server?.apiPort === undefined ? "" : ` port ${server.apiPort}`;
      return `${start} 127.0.0.1:${server?.port}${check}`;
    });
  writeFileSync(config, changed);
  const child = spawnServer([haproxy ?? "haproxy", "-f", config], log);
  await waitFor(
    () => runStatement(urlOf(port), "CREATE TEMPORARY TABLE writable ()").catch(() => undefined),
    () => child.exitCode !== null && readFileSync(log, "utf8"),
  );
  return port;
}
