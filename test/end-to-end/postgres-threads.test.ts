/**
 * Several threads on PostgreSQL: each has connections of its own, and together they are one
 * service.
 */
import { expect, test } from "bun:test";
import { makeDatabase } from "../postgres-server.ts";
import { insist, startService, waitFor } from "./running-service.ts";

test("threads on PostgreSQL keep to the pool of the process and count together", async () => {
  const database = await makeDatabase();
  const args = ["--threads", "3", "--database-pool-size", "4"];
  {
    await using service = await startService({ database: database.url, args });
    const seen = new Set<string | undefined>();
    const headers = { connection: "close" };
    await waitFor(async () => {
      const response = await service.call("GET /healthz", { headers });
      seen.add(response.headers.get("x-request-id")?.split("-")[0]);
      return seen.size === 3 || undefined;
    });
    const statuses = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const body = '{"name":"Fern"}';
        return (await insist(() => service.call("POST /plants", { body, headers }))).status;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([201]));
    const [held] = await database.query(
      `SELECT count(*)::int AS connections FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    expect(Number(held?.connections)).toBeLessThanOrEqual(4);
    const metrics = await (await service.call("GET /metrics")).text();
    expect(metrics).toContain("\nplantstore_writes_total 200\n");
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
  }
  await database.drop();
}, 60_000);
