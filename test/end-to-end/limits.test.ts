/** Rate limits and quotas of the real program, over its threads and between instances. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { PlantStore } from "../../client/plant-store.ts";
import { type Engine, makePlace } from "../../proofs/audited-store.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import {
  callAnew,
  insist,
  makeToken,
  type RunningService,
  runProgram,
  startService,
  waitFor,
  waitForThreads,
} from "./running-service.ts";

setDefaultTimeout(120_000);

/** Instances on one storage, each on many threads, and a token for them. */
async function start(engine: Engine, instances: number, threads: number, ...flags: string[]) {
  const parts = new AsyncDisposableStack();
  const { database } = parts.use(await makePlace(engine));
  const token = await makeToken({ database }, "ann");
  const services: RunningService[] = [];
  while (services.length < instances) {
    const args = ["--threads", String(threads), ...flags];
    const service = parts.use(await startService({ database, args }));
    await waitForThreads(service, threads);
    services.push(service);
  }
  /** Sends many requests at once, to the services in turn, and counts the responses by status. */
  async function send(count: number, request: string, body?: string) {
    const statuses: Record<number, number> = {};
    const ask = async (_: unknown, index: number) => {
      const service = services[index % instances] as RunningService;
      const call = () => callAnew(service, request, { token, ...(body && { body }) });
      const { status } = await insist(call);
      statuses[status] = (statuses[status] ?? 0) + 1;
    };
    await Promise.all(Array.from({ length: count }, ask));
    return statuses;
  }
  return { services, send, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

const list = "GET /plants?limit=1";

test("exactly as many of many requests pass as the rate limit says, over all threads", async () => {
  await using one = await start("sqlite", 1, 4, "--rate-limit", "123/d");
  expect(await one.send(500, list)).toEqual({ 200: 123, 429: 377 });
  await waitFor(async () => {
    const metrics = await (
      await callAnew(one.services[0] as RunningService, "GET /metrics")
    ).text();
    return metrics.includes('\nplantstore_refusals_total{limit="requests"} 377\n') || undefined;
  });
});

test("each instance counts a rate by itself", async () => {
  await using both = await start("postgres", 2, 2, "--rate-limit", "100/d");
  expect(await both.send(120, list)).toEqual({ 200: 120 });
  // Long enough for an instance to tell another.
  await Bun.sleep(1_500);
  expect(await both.send(120, list)).toEqual({ 200: 80, 429: 40 });
});

test.each<[Engine, instances: number, threads: number]>([
  ["sqlite", 1, 4],
  ["postgres", 2, 2],
])(
  "on %s, %d instances of %d threads create exactly as many plants as the quota says",
  async (engine, instances, threads) => {
    await using all = await start(engine, instances, threads, "--garden-plants-max", "57");
    const create = (count: number) => all.send(count, "POST /plants", '{"name":"Fern"}');
    expect(await create(200)).toEqual({ 201: 57, 507: 143 });
    for (const id of [1, 2, 3])
      expect(await all.send(1, `DELETE /plants/${id}`)).toEqual({ 204: 1 });
    expect(await create(20)).toEqual({ 201: 3, 507: 17 });
  },
);

test("calls that share a client are refused rarely, however many wait for the rate limit", async () => {
  await using service = await startService({ args: ["--rate-limit", "40/2s"] });
  let refused = 0;
  const store = new PlantStore({
    url: service.url,
    token: service.token,
    async fetch(url, init) {
      const response = await fetch(url, init);
      if (response.status === 429) refused++;
      return response;
    },
  });
  let calls = 120;
  const callInTurn = async () => {
    while (calls-- > 0) await store.me();
  };
  await Promise.all(Array.from({ length: 16 }, callInTurn));
  // Those that were sent together with the one that used up the rest.
  expect(refused).toBeLessThan(16);
});

test("an import waits for the rate limit, and stores every line", async () => {
  await using service = await startService({ args: ["--rate-limit", "20/s"] });
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.jsonl");
  await Bun.write(path, '{"name":"Fern"}\n'.repeat(60));
  const variables = { PLANTSTORE_TOKEN: service.token };
  const finished = await runProgram(["import", path, "--url", service.url, "--json"], variables);
  expect(finished).toMatchObject({ exitCode: 0 });
  expect(JSON.parse(finished.out)).toEqual({ stored: 60, alreadyThere: 0, refused: 0 });
});
