/** Slow readers and unfinished bodies take bounded memory, on both engines. */
import { expect, test } from "bun:test";
import { startService } from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";
import { skipsOutsideLinux } from "../../skipping.ts";
import { attack, fillGarden } from "./slow-attack.ts";

/** 50 readers took 225 MB when a page had a fixed number of plants, and 100 bulks 570 MB. */
const counts = { readers: 50, bodies: 1_500, bulks: 100 };
const grownMbMax = 100;
const holdMs = 2_000;

/** Neither bodies nor invalid lines get as far as the engine. */
const attacks = [
  ["readers", "SQLite"],
  ["readers", "PostgreSQL"],
  ["bodies", "SQLite"],
  ["bulks", "SQLite"],
] as const;

async function start(engine: string) {
  if (engine === "SQLite") return { service: await startService(), async drop() {} };
  const database = await makeDatabase();
  const service = await startService({ database: database.url });
  return { service, drop: () => database.drop() };
}

test.skipIf(skipsOutsideLinux()).each(attacks)(
  "slow %s take bounded memory on %s, and other callers are served",
  async (kind, engine) => {
    const { service, drop } = await start(engine);
    if (kind === "readers") await fillGarden(service);
    const count = counts[kind];
    const { open, answered, grownMb, faults } = await attack(service, kind, count, holdMs);
    await service[Symbol.asyncDispose]();
    await drop();
    expect(open + answered).toBeGreaterThanOrEqual(count);
    expect(faults).toEqual([]);
    expect(grownMb).toBeLessThan(grownMbMax);
  },
  120_000,
);
