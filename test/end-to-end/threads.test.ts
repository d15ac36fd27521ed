/** Many threads, one service: it does not matter which thread gets a connection. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { makeDatabase } from "../postgres-server.ts";
import {
  callAnew,
  insist,
  type RunningService,
  startService,
  waitFor,
  waitForThreads,
} from "./running-service.ts";

describe("a service on four threads", () => {
  const threads = 4;
  let service: RunningService;

  beforeAll(async () => {
    service = await startService({ args: ["--threads", String(threads)] });
    await waitForThreads(service, threads);
  });

  afterAll(() => service[Symbol.asyncDispose]());

  test("shows a plant on all of them as soon as it is created", async () => {
    const listAll = () =>
      Promise.all(
        Array.from({ length: 16 }, async () => {
          const plants = await (await callAnew(service, "GET /plants")).json();
          return plants.length;
        }),
      );
    for (let id = 1; id <= 20; id++) {
      // Every thread may cache this list, which the plant makes out of date.
      await listAll();
      const body = JSON.stringify({ name: "Fern", id });
      expect((await callAnew(service, "POST /plants", { body })).status).toBe(201);
      expect(new Set(await listAll())).toEqual(new Set([id]));
    }
  });

  test("writes one log, line by line", async () => {
    const requests = 200;
    await Promise.all(
      Array.from({ length: requests }, () => callAnew(service, "GET /plants?limit=x")),
    );
    const lines = await waitFor(() => {
      const all = service.output().out.trimEnd().split("\n");
      return all.filter((line) => line.includes('"status":400')).length === requests
        ? all
        : undefined;
    });
    const ids = lines.map((line) => (JSON.parse(line) as { requestId?: string }).requestId);
    expect(new Set(ids.map((id) => id?.split("-")[0])).size).toBeGreaterThanOrEqual(threads);
  });
});

test("threads on PostgreSQL share the pool of the process, and count together", async () => {
  await using database = await makeDatabase();
  const args = ["--threads", "3", "--database-pool-size", "4"];
  await using service = await startService({ database: database.url, args });
  await waitForThreads(service, 3);
  const body = '{"name":"Fern"}';
  const statuses = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const response = await insist(() => callAnew(service, "POST /plants", { body }));
      return response.status;
    }),
  );
  expect(new Set(statuses)).toEqual(new Set([201]));
  const [held] = await database.query(
    `SELECT count(*)::int AS connections FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
  expect(Number(held?.connections)).toBeLessThanOrEqual(4);
  await waitFor(async () => {
    const metrics = await (await service.call("GET /metrics")).text();
    return metrics.includes("\nplantstore_writes_total 200\n") || undefined;
  });
}, 120_000);

describe("a service whose thread dies", () => {
  const program = join(import.meta.dir, "dying-thread.ts");

  test.each([
    ["a listener", "thread.ts", "its end"],
    ["a listener", "thread.ts", "an error"],
    ["the writer", "worker.ts", "its end"],
    ["the writer", "worker.ts", "an error"],
  ])("ends with exit code 1 and says why, if %s is lost (%s, by %s)", async (...given) => {
    const [, name, how] = given;
    await using service = await startService({
      args: ["--threads", "2", "--log", "json"],
      program,
      variables: { DYING_THREAD: name, DYING_BY: how },
    });
    expect(await service.exited).toBe(1);
    await waitFor(() => service.output().errors.includes("A thread broke down") || undefined);
    expect(service.output().out).toContain('"event":"broken down"');
  });
});
