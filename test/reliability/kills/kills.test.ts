/**
 * The real program is killed at every kind of moment and told to stop under load, and keeps its
 * word.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { live, moments } from "./life.ts";

setDefaultTimeout(120_000);

const seed = 6;

test("every answer holds, whenever it is killed or told to stop", async () => {
  const { faults, figures } = await live({ seed, ends: moments, threads: 2, isSecure: false });
  expect(faults).toEqual([]);
  expect(figures.answered).toBeGreaterThan(0);
  expect(figures.stopped).toBe(1);
});

test("over TLS, no answer is cut short when it is told to stop", async () => {
  const { faults } = await live({ seed, ends: ["stop"], threads: 1, isSecure: true });
  expect(faults).toEqual([]);
});
