/** What /metrics says of the storage, on both engines. */
import { describe, expect, test } from "bun:test";
import { renameSync } from "node:fs";
import { makeDatabase } from "../postgres-server.ts";
import { type RunningService, startService } from "./running-service.ts";

/** The value of a sample; 0 if it isn't there. */
async function read(service: RunningService, sample: string): Promise<number> {
  const lines = (await (await service.call("GET /metrics")).text()).split("\n");
  return Number(lines.find((line) => line.startsWith(`${sample} `))?.split(" ")[1] ?? 0);
}

describe.each(["SQLite", "PostgreSQL"])("on %s", (engine) => {
  const makeOwn = async () => (engine === "SQLite" ? undefined : makeDatabase());
  const args = ["--threads", "1", "--garden-plants-max", "3"];

  test("reads, commits, waits and refused plants of a bulk are counted, and whether it's ready", async () => {
    await using own = await makeOwn();
    await using service = await startService({ args, ...(own && { database: own.url }) });
    const body = `[${Array.from({ length: 5 }, () => '{"name":"Fern"}')}]`;
    expect((await service.call("POST /plants/bulk", { body })).status).toBe(200);
    expect(await read(service, 'plantstore_refusals_total{limit="plants"}')).toBe(2);
    expect((await service.call("POST /plants", { body: '{"name":"Fern"}' })).status).toBe(507);
    expect(await read(service, 'plantstore_refusals_total{limit="plants"}')).toBe(3);
    for (const id of [1, 2]) await service.call(`DELETE /plants/${id}`);
    for (let count = 0; count < 2; count++) await service.call("GET /plants/3");
    for (const [name, count] of [
      ["read_duration", 2],
      ["commit_duration", 4],
      ["commit_wait", 4],
    ] as const) {
      const counted = await read(service, `plantstore_${name}_seconds_count`);
      expect([name, counted]).toEqual([name, count]);
      expect(await read(service, `plantstore_${name}_seconds_sum`)).toBeGreaterThan(0);
    }
    expect(await read(service, "plantstore_ready")).toBe(1);
    const pool = ["busy", "idle"].map((state) => `plantstore_pool_connections{state="${state}"}`);
    const [busy = 0, idle = 0] = await Promise.all(pool.map((sample) => read(service, sample)));
    expect(busy + idle > 0).toBe(engine === "PostgreSQL");
    const sizes = ["database", "log", "disk_free", "disk"];
    const known = await Promise.all(
      sizes.map(async (name) => (await read(service, `plantstore_${name}_bytes`)) > 0),
    );
    expect(known).toEqual(sizes.map((name) => name === "database" || engine === "SQLite"));
    if (engine === "PostgreSQL") return;
    renameSync(service.database, `${service.database}.gone`);
    expect(await read(service, "plantstore_ready")).toBe(0);
  });
});
