/** Bytes that no well-behaved client sends, and the one expected outcome of each. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import { play } from "./battery.ts";
import {
  chunkCases,
  connectionCases,
  headCases,
  lengthCases,
  sizeCases,
  victimId,
} from "./cases.ts";

setDefaultTimeout(120_000);

let service: RunningService;

beforeAll(async () => {
  service = await startService();
  await createVictim();
});

afterAll(() => service[Symbol.asyncDispose]());

describe.each([
  ["lengths and encodings", lengthCases],
  ["chunks", chunkCases],
  ["heads", headCases],
  ["sizes", sizeCases],
  ["pipelines, and early ends", connectionCases],
])("%s", (_, cases) => {
  test.each(cases)("%s", async (name, sent, outcome) => {
    const played = await play(service, [name, sent, outcome]);
    const isRefused = outcome.includes("refused");
    expect(isRefused ? played.replace(/[45]\d\d(?= closed)/, "refused") : played).toBe(outcome);
    if (outcome.endsWith("closed")) await letWritesPass();
    const others = await clearGarden();
    // A create without a response may have been done. A refused one must not.
    if (outcome !== "closed" && !outcome.includes("201")) expect(others).toBe(0);
  });
});

function create(body: string): Promise<Response> {
  return service.call("POST /plants", { body, headers: { Connection: "close" } });
}

function createVictim(): Promise<Response> {
  return create(`{"name":"Victim","id":${victimId}}`);
}

/** Writes are committed in order, so earlier ones are done after one more. */
async function letWritesPass(): Promise<void> {
  const id = 1_000_000;
  expect((await create(`{"name":"Last","id":${id}}`)).status).toBe(201);
  await service.call(`DELETE /plants/${id}`);
}

/** Checks that the victim exists, deletes all other plants, and returns how many they were. */
async function clearGarden(): Promise<number> {
  const headers = { Connection: "close" };
  const response = await service.call("GET /plants?fields=id", { headers });
  const plants = (await response.json()) as { id: number }[];
  const others = plants.filter(({ id }) => id !== victimId);
  if (others.length === plants.length) await createVictim();
  for (const { id } of others) await service.call(`DELETE /plants/${id}`);
  expect([response.status, plants.length - others.length]).toEqual([200, 1]);
  return others.length;
}
