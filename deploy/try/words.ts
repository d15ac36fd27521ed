/** What `npm run try:postgres` says once all of it runs. */
import type { PostgresServer } from "../../test/postgres-server.ts";
import type { Backend } from "./balancer.ts";

export interface Setting {
  readonly url: string;
  readonly server: PostgresServer;
  /** Where the data is kept; absent if it goes with the program. */
  readonly folder: string | undefined;
  readonly isNew: boolean;
  readonly backends: readonly Backend[];
  readonly pids: ReadonlyMap<string, number>;
}

export function describeSetting(setting: Setting): string {
  const { url, server, folder, isNew, backends, pids } = setting;
  const kept = isNew ? `data in ${folder}` : `data of before, in ${folder}`;
  const rows = [
    ["load balancer", url, "each connection to the next instance that is ready"],
    ...backends.map(({ name, port }) => [
      `instance ${name}`,
      `http://127.0.0.1:${port}`,
      `pid ${pids.get(name)}`,
    ]),
    ["PostgreSQL", `127.0.0.1:${server.port}`, folder ? kept : "data gone at the end"],
  ];
  const lines = rows.map(
    ([what = "", where = "", note = ""]) => `  ${what.padEnd(15)}${where.padEnd(24)}${note}`,
  );
  return `\n${lines.join("\n")}\n`;
}

export function firstSteps(url: string, token: string, pid: number): string {
  return `In another terminal:

  export PLANTSTORE_TOKEN=${token}

  curl -i ${url}/plants -H "Authorization: Bearer $PLANTSTORE_TOKEN" \\
    -H 'Content-Type: application/json' -d '{"name":"Monstera","tag":"living room"}'
  curl -i ${url}/plants -H "Authorization: Bearer $PLANTSTORE_TOKEN"

Ask a few times, and see below how the instances take turns and tell the same. Then let one of them die,
and go on asking: the other one answers, and the first is started again after a while.

  kill -9 ${pid}

Stop all of it with Ctrl+C.
`;
}
