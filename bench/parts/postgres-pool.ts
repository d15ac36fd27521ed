/** The same pool without HTTP: single inserts against the engine's groups. */
import { Pool } from "pg";
import type { Write } from "../../src/domain/storage.ts";
import { openStorage } from "../../src/storage/open.ts";
import { defaultConnectionLimits } from "../../src/storage/storage.ts";
import type { TestDatabase } from "../../test/postgres-server.ts";
import { showProgress } from "../output.ts";
import type { Timing } from "../plan.ts";
import { medianOf } from "./median.ts";

export interface PoolResult {
  readonly title: string;
  readonly plantsPerSecond: number;
  readonly rounds: readonly number[];
}

interface Way {
  readonly title: string;
  /** How many are under way at a time. */
  readonly clients: number;
  readonly plantsAtOnce: number;
  store(client: number): Promise<unknown>;
}

export const groupWrites = 48;
const singleClients = 64;

export async function measurePool(timing: Timing, database: TestDatabase): Promise<PoolResult[]> {
  const { poolSize } = defaultConnectionLimits;
  const storage = await openStorage(database.url, { isServing: false });
  const pool = new Pool({ connectionString: database.url, max: poolSize });
  await database.query("CREATE SEQUENCE plant_ids");
  const ways: Way[] = [
    {
      title: "one insert at a time",
      clients: singleClients,
      plantsAtOnce: 1,
      store: (client) =>
        pool.query(
          `INSERT INTO plants (garden, id, name, tag)
             VALUES ($1, nextval('plant_ids'), $2, $3) RETURNING id`,
          [`single-${client}`, "Monstera deliciosa", "living room"],
        ),
    },
    {
      title: `the engine, groups of ${groupWrites}`,
      clients: poolSize,
      plantsAtOnce: groupWrites,
      store: (client) => storage.apply(Array(groupWrites).fill(plantOf(`group-${client}`))),
    },
  ];
  const measured = ways.map((): number[] => []);
  try {
    for (let round = 0; round <= timing.rounds; round++) {
      for (const [index, way] of ways.entries()) {
        showProgress(`postgres without HTTP: ${way.title}, round ${round} of ${timing.rounds}`);
        const rate = await measureRate(way, timing.warmUpSeconds);
        // Round 0 warms up.
        if (round > 0) measured[index]?.push(rate);
      }
    }
  } finally {
    await storage.close();
    await pool.end();
  }
  return ways.map(({ title }, index) => {
    const rounds = measured[index] ?? [];
    return { title, plantsPerSecond: medianOf(rounds), rounds };
  });
}

function plantOf(garden: string): Write {
  return {
    kind: "create",
    garden,
    id: undefined,
    name: "Monstera deliciosa",
    tag: "living room",
    idempotency: undefined,
  };
}

async function measureRate(way: Way, seconds: number): Promise<number> {
  const startedAtMs = performance.now();
  const endsAtMs = startedAtMs + seconds * 1000;
  let plants = 0;
  const run = async (client: number) => {
    while (performance.now() < endsAtMs) {
      await way.store(client);
      plants += way.plantsAtOnce;
    }
  };
  await Promise.all(Array.from({ length: way.clients }, (_, client) => run(client)));
  return (plants * 1000) / (performance.now() - startedAtMs);
}
