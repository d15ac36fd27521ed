/** A consumer of events misses nothing, however often it's cut off. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { followEvents } from "./consumer.ts";

setDefaultTimeout(120_000);

const disconnects = 8;

test.each([
  ["SQLite", { engine: "sqlite", threads: [2] }],
  ["PostgreSQL", { engine: "postgres", threads: [1, 1] }],
] as const)("a consumer on %s sees every event once and in order", async (_, layout) => {
  const { faults, figures } = await followEvents(layout, disconnects, 1);
  expect(faults).toEqual([]);
  expect(figures.disconnects).toBeGreaterThanOrEqual(disconnects);
});
