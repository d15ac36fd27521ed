/** How long the client keeps trying by default, and its codes. The rest is in test/client/. */
import { afterEach, expect, spyOn, test } from "bun:test";
import type { ErrorCode } from "../src/domain/errors.ts";
import type { PlantContent } from "../src/domain/plant.ts";
import { PlantStore, PlantStoreUnreachable } from "./plant-store.ts";
import type { ProblemCode } from "./problem-error.ts";
import type { PlantDraft, PlantField } from "./types.ts";

const timeoutMs = 30_000;
const { setTimeout } = globalThis;
const timers = spyOn(globalThis, "setTimeout");
afterEach(() => timers.mockRestore());

test("it keeps trying for about 20 seconds, so that a restart goes unnoticed", async () => {
  const pausesMs: number[] = [];
  timers.mockImplementation(((act: () => void, durationMs: number) => {
    const isPause = durationMs < timeoutMs;
    if (isPause) pausesMs.push(durationMs);
    return setTimeout(act, isPause ? 0 : durationMs);
  }) as typeof setTimeout);
  const fetch = () => Promise.reject(new Error("refused"));
  const store = new PlantStore({ url: "http://localhost", token: "t", fetch, timeoutMs });
  await expect(store.me()).rejects.toBeInstanceOf(PlantStoreUnreachable);
  const totalMs = pausesMs.reduce((sum, each) => sum + each);
  expect(totalMs).toBeWithin(13_000, 27_000);
  expect(Math.max(...pausesMs)).toBeLessThanOrEqual(5_000);
});

test("it names every field of a plant, and no other", () => {
  const ofClient: PlantField = "name" as keyof PlantContent;
  const ofDraft: Exclude<keyof PlantDraft, "id"> = "name" as keyof PlantContent;
  const ofService: keyof PlantContent = "name" as PlantField;
  expect([ofClient, ofDraft]).toEqual([ofService, ofService]);
});

// The client's package can't import the service's types, so the compiler compares them here.
test("it names every code of the service, and no other", () => {
  const ofClient: Exclude<ProblemCode, "unexpected"> = "conflict" as ErrorCode;
  const ofService: ErrorCode = "conflict" as Exclude<ProblemCode, "unexpected">;
  expect(ofClient).toBe(ofService);
});
