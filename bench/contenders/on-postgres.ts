/** Two ways to serve the same PostgreSQL tables: Plant Store, and one INSERT a request. */
import { join } from "node:path";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { readConfig } from "../../src/config.ts";
import { openStorage } from "../../src/storage/open.ts";
import type { TestDatabase } from "../../test/postgres-server.ts";
import type { ChildWish } from "../process/children.ts";
import { firstPlantNumber, plantName, tag } from "./contender.ts";
import { bunPath, rootDirectory, serversDirectory } from "./paths.ts";

/** What a seat needs to know of who is started on it. */
export interface OnPostgres {
  readonly name: "plant-store" | "one-insert";
  readonly readyPath: string;
  describeStart(directory: string, port: number): ChildWish;
}

export const plantsBefore = 20;

export function plantStoreOn(database: TestDatabase): OnPostgres {
  return {
    name: "plant-store",
    readyPath: "/readyz",
    describeStart: (_directory, port) => ({
      command: [
        ...[join(rootDirectory, "bin", "plantstore"), "serve"],
        ...["--port", String(port), "--log", "json"],
      ],
      environment: { PLANTSTORE_DATABASE: database.url },
      directory: rootDirectory,
    }),
  };
}

/** With as many connections and threads as Plant Store takes by itself. */
export function oneInsertOn(database: TestDatabase): OnPostgres {
  const { limits, threads } = readConfig({ database: database.url }, {});
  return {
    name: "one-insert",
    readyPath: "/readyz",
    describeStart: (_directory, port) => ({
      command: [
        ...[bunPath, join(serversDirectory, "insert-server.ts")],
        ...[port, database.url, limits.poolSize, threads].map(String),
      ],
    }),
  };
}

/** Makes the tables, and gardens with a few plants each; hands back their tokens. */
export async function seedDatabase(database: TestDatabase, gardens: number): Promise<string[]> {
  const storage = await openStorage(database.url, { isServing: false });
  const tokens: string[] = [];
  for (let index = 0; index < gardens; index++) {
    const user = `gardener-${index}`;
    tokens.push((await issueToken(storage, { user }, Date.now())).token);
    await storage.apply(
      Array.from({ length: plantsBefore }, (_, number) => ({
        kind: "create",
        garden: user,
        id: undefined,
        name: plantName(firstPlantNumber + number),
        tag,
        idempotency: undefined,
      })),
    );
  }
  await storage.close();
  await database.query(`CREATE SEQUENCE plant_ids START ${firstPlantNumber}`);
  return tokens;
}
