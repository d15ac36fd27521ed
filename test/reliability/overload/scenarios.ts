/** What is asked in each scenario, and of which engine. */
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import { makeDatabase, startPostgres } from "../../postgres-server.ts";
import { renderCreate, renderList } from "./flood.ts";

export interface Scenario {
  readonly name: string;
  readonly engine: "SQLite" | "PostgreSQL";
  readonly requests: (token: string) => readonly string[];
}

const plantsCount = 3_000;
const pagePlants = 2_000;

/** Pages that begin in so many places that none of them is asked for again soon, and kept. */
function renderPages(token: string): string[] {
  return Array.from({ length: 997 }, (_, after) =>
    renderList(token, `limit=${pagePlants}&after=${after}`),
  );
}

export const scenarios: readonly Scenario[] = (["SQLite", "PostgreSQL"] as const).flatMap(
  (engine) => [
    { name: "creates", engine, requests: (token) => [renderCreate(token)] },
    { name: `lists of ${pagePlants}`, engine, requests: renderPages },
    {
      name: "creates and lists of 20",
      engine,
      requests: (token) => [renderCreate(token), renderList(token, "limit=20")],
    },
  ],
);

export interface Prepared {
  readonly service: RunningService;
  [Symbol.asyncDispose](): Promise<void>;
}

/** With some plants to be listed. On PostgreSQL, commits reach the disk as they do in earnest. */
export async function prepare({ engine }: Scenario): Promise<Prepared> {
  const server = engine === "PostgreSQL" ? await startPostgres() : undefined;
  const database = server && (await makeDatabase(server));
  const service = await startService(database ? { database: database.url } : {});
  for (let count = 0; count < plantsCount; count += 100) {
    const creates = Array.from({ length: 100 }, () =>
      service.call("POST /plants", { body: '{"name":"Monstera deliciosa","tag":"office"}' }),
    );
    await Promise.all(creates);
  }
  return {
    service,
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await server?.stop();
    },
  };
}
