/** On PostgreSQL, what one would write first: one INSERT per request, in Plant Store's tables. */
import { join } from "node:path";
import { readConfig } from "../../src/config.ts";
import { bunPath, readVersionOf, rootDirectory, serversDirectory } from "../paths.ts";
import { type ActionName, type Contender, firstNumber } from "./contender.ts";
import { type Build, plantStoreOn } from "./plant-store.ts";
import { changeDatabase } from "./postgres-server.ts";

const known = new Set<ActionName>(["list", "create"]);

/** It has as many instances, threads and connections as Plant Store has by default. */
export function createOneInsert(build: Build): Contender {
  const own = plantStoreOn("postgres", build);
  const { limits, threads } = readConfig({ database: "postgres://any/any" }, {});
  return {
    ...own,
    name: "one-insert",
    summary: "on PostgreSQL: Bun and pg, one INSERT per request, ids from a sequence, few checks",
    readVersion: async () =>
      `pg ${await readVersionOf(join(rootDirectory, "node_modules", "pg"))}, Bun ${Bun.version}`,
    async prepare(directory, size) {
      const data = await own.prepare(directory, size);
      const start = firstNumber + size.plants;
      await changeDatabase(data.database, [`CREATE SEQUENCE plant_ids START ${start}`]);
      return data;
    },
    describeStart: ({ database }, port) => ({
      command: [
        bunPath,
        join(serversDirectory, "insert-server.ts"),
        ...[port, database, limits.poolSize, threads].map(String),
      ],
    }),
    describeAction: (name, size) => (known.has(name) ? own.describeAction(name, size) : undefined),
  };
}
