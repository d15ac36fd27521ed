/** What /metrics says of the storage, on both engines. */
import { expect, test } from "bun:test";
import { renameSync } from "node:fs";
import { engines } from "../contract/garden.ts";
import { makeDatabase } from "../postgres-server.ts";
import { readMetric, serveHere } from "./running-service.ts";

test.each(engines)(
  "on %s, reads, commits, waits and refused plants of a bulk are counted, and whether it's ready",
  async (engine) => {
    await using own = engine === "SQLite" ? undefined : await makeDatabase();
    const settings = { "garden-plants-max": "3", ...(own && { database: own.url }) };
    await using service = await serveHere(settings);
    const body = `[${Array.from({ length: 5 }, () => '{"name":"Fern"}')}]`;
    expect((await service.call("POST /plants/bulk", { body })).status).toBe(200);
    expect(await readMetric(service, 'refusals_total{limit="plants"}')).toBe(2);
    expect((await service.call("POST /plants", { body: '{"name":"Fern"}' })).status).toBe(507);
    expect(await readMetric(service, 'refusals_total{limit="plants"}')).toBe(3);
    for (const id of [1, 2]) await service.call(`DELETE /plants/${id}`);
    for (let count = 0; count < 2; count++) await service.call("GET /plants/3");
    for (const [name, count] of [
      ["read_duration", 2],
      ["commit_duration", 4],
      ["commit_wait", 4],
    ] as const) {
      const counted = await readMetric(service, `${name}_seconds_count`);
      expect([name, counted]).toEqual([name, count]);
      expect(await readMetric(service, `${name}_seconds_sum`)).toBeGreaterThan(0);
    }
    expect(await readMetric(service, "ready")).toBe(1);
    const pool = ["busy", "idle"].map((state) => `pool_connections{state="${state}"}`);
    const [busy = 0, idle = 0] = await Promise.all(pool.map((name) => readMetric(service, name)));
    expect(busy + idle > 0).toBe(engine === "PostgreSQL");
    const sizes = ["database", "log", "disk_free", "disk"];
    const known = await Promise.all(
      sizes.map(async (name) => (await readMetric(service, `${name}_bytes`)) > 0),
    );
    expect(known).toEqual(sizes.map((name) => name === "database" || engine === "SQLite"));
    if (engine === "PostgreSQL") return;
    renameSync(service.database, `${service.database}.gone`);
    expect(await readMetric(service, "ready")).toBe(0);
    renameSync(`${service.database}.gone`, service.database);
  },
);
