/** Rate limits and quotas of the real program, over its threads and between instances. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { makeDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import {
  callAnew,
  insist,
  type RunningService,
  runProgram,
  startService,
  waitFor,
  waitForThreads,
} from "./running-service.ts";

/** Sends many requests at once, to the services in turn, and counts the responses by status. */
async function sendMany(
  services: readonly RunningService[],
  token: string,
  count: number,
  make: (service: RunningService) => Promise<Response> = (service) =>
    callAnew(service, "GET /plants?limit=1", { token }),
): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const service = services[index % services.length] as RunningService;
      const { status } = await make(service);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }),
  );
  return statuses;
}

describe("on one file, with four threads", () => {
  const start = (...args: string[]) => startService({ args: ["--threads", "4", ...args] });

  test("exactly as many of many requests pass as the rate limit says, over all threads", async () => {
    await using service = await start("--rate-limit", "123/d");
    await waitForThreads(service, 4);
    const { token } = service;
    expect(await sendMany([service], token, 500)).toEqual({ 200: 123, 429: 377 });
    await waitFor(async () => {
      const metrics = await (await callAnew(service, "GET /metrics")).text();
      return metrics.includes('\nplantstore_refusals_total{limit="requests"} 377\n') || undefined;
    });
  }, 120_000);

  test("exactly as many plants are created as the quota says, and as many again as are deleted", async () => {
    await using service = await start("--garden-plants-max", "57");
    await waitForThreads(service, 4);
    const { token } = service;
    const create = (of: RunningService) =>
      callAnew(of, "POST /plants", { token, body: '{"name":"Fern"}' });
    expect(await sendMany([service], token, 200, create)).toEqual({ 201: 57, 507: 143 });
    for (const id of [1, 2, 3]) await callAnew(service, `DELETE /plants/${id}`, { token });
    expect(await sendMany([service], token, 20, create)).toEqual({ 201: 3, 507: 17 });
    expect(await (await callAnew(service, "GET /plants", { token })).json()).toHaveLength(57);
  }, 120_000);
});

test("an import waits for the rate limit, and stores every line", async () => {
  await using service = await startService({ args: ["--rate-limit", "20/s"] });
  const lines = Array.from({ length: 60 }, (_, index) => `{"name":"Fern ${index}"}\n`);
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.jsonl");
  await Bun.write(path, lines.join(""));
  const variables = { PLANTSTORE_TOKEN: service.token };
  const finished = await runProgram(["import", path, "--url", service.url, "--json"], variables);
  expect(finished).toMatchObject({ exitCode: 0 });
  expect(JSON.parse(finished.out)).toEqual({ stored: 60, alreadyThere: 0, refused: 0 });
}, 120_000);

describe("on one PostgreSQL, with two instances of two threads", () => {
  async function startTwo(...args: string[]) {
    const database = await makeDatabase();
    const options = { database: database.url, args: ["--threads", "2", ...args] };
    const first = await startService(options);
    const second = await startService(options);
    await Promise.all([first, second].map((service) => waitForThreads(service, 2)));
    return {
      services: [first, second],
      token: first.token,
      database,
      async [Symbol.asyncDispose]() {
        await first[Symbol.asyncDispose]();
        await second[Symbol.asyncDispose]();
        await database.drop();
      },
    };
  }

  test("each instance counts a rate by itself", async () => {
    await using both = await startTwo("--rate-limit", "100/d");
    const sendToEach = (count: number) =>
      Promise.all(both.services.map((service) => sendMany([service], both.token, count)));
    expect(await sendToEach(60)).toEqual([{ 200: 60 }, { 200: 60 }]);
    // Long enough for an instance to tell another.
    await Bun.sleep(1_500);
    const rest = { 200: 40, 429: 20 };
    expect(await sendToEach(60)).toEqual([rest, rest]);
  }, 120_000);

  test("a quota is exact over both", async () => {
    await using both = await startTwo("--garden-plants-max", "40");
    const create = (of: RunningService) =>
      insist(() => callAnew(of, "POST /plants", { token: both.token, body: '{"name":"Fern"}' }));
    expect(await sendMany(both.services, both.token, 150, create)).toEqual({ 201: 40, 507: 110 });
    const plants = await callAnew(both.services[0] as RunningService, "GET /plants", {
      token: both.token,
    });
    expect(await plants.json()).toHaveLength(40);
  }, 120_000);
});
