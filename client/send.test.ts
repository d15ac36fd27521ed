/** How long the client waits and keeps trying, and its names. The rest is in test/client/. */
import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test";
import type { ErrorCode } from "../src/domain/errors.ts";
import type { PlantContent } from "../src/domain/plant.ts";
import { PlantStore, PlantStoreUnreachable } from "./plant-store.ts";
import type { ProblemCode } from "./problem-error.ts";
import type { PlantDraft, PlantField } from "./types.ts";

const timeoutMs = 300_000;
const { setTimeout } = globalThis;
let pausesMs: number[];

/** Pauses are over at once. */
beforeEach(() => {
  pausesMs = [];
  spyOn(globalThis, "setTimeout").mockImplementation(((act: () => void, durationMs: number) => {
    if (durationMs === timeoutMs) return setTimeout(act, durationMs);
    pausesMs.push(durationMs);
    return setTimeout(act, 0);
  }) as typeof setTimeout);
});
afterEach(() => mock.restore());

const open = (fetch: () => Promise<Response>) =>
  new PlantStore({ url: "http://localhost", token: "t", fetch, timeoutMs });
const limited = (retryAfter: string) =>
  new Response(null, { status: 429, headers: { "retry-after": retryAfter } });

test("it keeps trying for about 20 seconds, so that a restart goes unnoticed", async () => {
  const store = open(() => Promise.reject(new Error("refused")));
  expect(await store.me().catch((error) => error)).toBeInstanceOf(PlantStoreUnreachable);
  expect(pausesMs.reduce((sum, each) => sum + each)).toBeWithin(13_000, 27_000);
  expect(Math.max(...pausesMs)).toBeLessThanOrEqual(5_000);
});

test("it waits as many seconds, or until the date, that it is asked to", async () => {
  // A date has whole seconds, so up to one of the thirty may be lost.
  const date = new Date(Date.now() + 30_000).toUTCString();
  const responses = [limited("7"), limited(date), new Response(null, { status: 204 })];
  await open(async () => responses.shift() as Response).delete(1);
  const [first = 0, second = 0, ...others] = pausesMs;
  expect(others).toEqual([]);
  expect(first).toBeWithin(7_000, 7_200);
  expect(second).toBeWithin(28_000, 30_300);
});

// The client's package can't import the service's types, so the compiler compares them here.
test("it names every field of a plant and every code of the service, and no other", () => {
  const ofClient: PlantField = "name" as keyof PlantContent;
  const ofDraft: Exclude<keyof PlantDraft, "id"> = "name" as keyof PlantContent;
  const ofService: keyof PlantContent = "name" as PlantField;
  expect([ofClient, ofDraft]).toEqual([ofService, ofService]);
  const clientCode: Exclude<ProblemCode, "unexpected"> = "conflict" as ErrorCode;
  const serviceCode: ErrorCode = "conflict" as Exclude<ProblemCode, "unexpected">;
  expect(clientCode).toBe(serviceCode);
});
