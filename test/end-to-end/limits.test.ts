/** Limits of the real program: exact over threads and connections, and shared between instances. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { makeDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import {
  insist,
  type RunningService,
  runProgram,
  startService,
  waitFor,
} from "./running-service.ts";

/** Each on a connection of its own, which the kernel gives to one thread or another. */
function call(service: RunningService, request: string, token: string, body?: string) {
  const headers = { connection: "close" };
  return service.call(request, { token, headers, ...(body !== undefined && { body }) });
}

async function waitForThreads(service: RunningService, threads: number): Promise<void> {
  const seen = new Set<string | undefined>();
  await waitFor(async () => {
    const { headers } = await call(service, "GET /healthz", "");
    seen.add(headers.get("x-request-id")?.split("-")[0]);
    return seen.size === threads || undefined;
  });
}

/** Sends so many at once, to the services in turn; how many were answered with each status. */
async function sendMany(
  services: readonly RunningService[],
  token: string,
  count: number,
  make: (service: RunningService) => Promise<Response> = (service) =>
    call(service, "GET /plants?limit=1", token),
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
    const metrics = await (await call(service, "GET /metrics", "")).text();
    expect(metrics).toContain('\nplantstore_refusals_total{limit="requests"} 377\n');
  }, 60_000);

  test("exactly as many plants are created as the quota says, and as many again as are deleted", async () => {
    await using service = await start("--garden-plants-max", "57");
    await waitForThreads(service, 4);
    const { token } = service;
    const create = (of: RunningService) => call(of, "POST /plants", token, '{"name":"Fern"}');
    expect(await sendMany([service], token, 200, create)).toEqual({ 201: 57, 507: 143 });
    for (const id of [1, 2, 3]) await call(service, `DELETE /plants/${id}`, token);
    expect(await sendMany([service], token, 20, create)).toEqual({ 201: 3, 507: 17 });
    expect(await (await call(service, "GET /plants", token)).json()).toHaveLength(57);
  }, 60_000);
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
}, 60_000);

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

  test("what one let through is missing at the other about a second later", async () => {
    await using both = await startTwo("--rate-limit", "100/d");
    const [first, second] = both.services as [RunningService, RunningService];
    expect(await sendMany([first], both.token, 60)).toEqual({ 200: 60 });
    // Until both have told and heard, each request that asks is one more that is used.
    let used = 60;
    await waitFor(async () => {
      used++;
      const { headers } = await call(second, "GET /plants?limit=1", both.token);
      const remaining = /r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1];
      await Bun.sleep(200);
      return Number(remaining) === 100 - used || undefined;
    });
    expect(await sendMany([second], both.token, 100)).toMatchObject({ 200: 100 - used });
    await waitFor(async () => {
      await Bun.sleep(200);
      return (await call(first, "GET /plants?limit=1", both.token)).status === 429 || undefined;
    });
    expect(await both.database.query("SELECT 1 FROM rate_buckets")).toHaveLength(1);
  }, 60_000);

  test("what they let through too much at once, they let through less afterwards", async () => {
    await using both = await startTwo("--rate-limit", "20/2s");
    const startedAtMs = performance.now();
    let passed = 0;
    while (performance.now() - startedAtMs < 6_000) {
      passed += (await sendMany(both.services, both.token, 8))[200] ?? 0;
      await Bun.sleep(50);
    }
    const seconds = (performance.now() - startedAtMs) / 1_000;
    // A bucket and what runs out of it, and once what the other passes before it hears of the
    // first, which takes longer on a busy machine. Two that never hear of each other would pass
    // twice as much.
    expect(passed).toBeLessThanOrEqual(1.75 * (20 + 10 * seconds));
    expect(passed).toBeGreaterThan(20);
  }, 60_000);

  test("a quota is exact over both", async () => {
    await using both = await startTwo("--garden-plants-max", "40");
    const create = (of: RunningService) =>
      insist(() => call(of, "POST /plants", both.token, '{"name":"Fern"}'));
    expect(await sendMany(both.services, both.token, 150, create)).toEqual({ 201: 40, 507: 110 });
    const plants = await call(both.services[0] as RunningService, "GET /plants", both.token);
    expect(await plants.json()).toHaveLength(40);
  }, 60_000);
});

test.each([
  [["--rate-limit", "100"], "--rate-limit must be off or a rate"],
  [["--garden-plants-max", "0"], "--garden-plants-max must be off or a number from 1"],
])("a value without sense stops the start in one line: %p", async (args, reason) => {
  const { exitCode, errors } = await runProgram(["serve", ...args]);
  expect(exitCode).toBe(2);
  expect(errors).toMatch(/^plantstore: [^\n]+\n/);
  expect(errors).toContain(reason);
});
