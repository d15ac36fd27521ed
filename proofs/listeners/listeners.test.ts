/** A consumer that is cut off misses no event, and neither does a forwarder that is killed. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { followEvents } from "./consumer.ts";
import { forwardUnderKills } from "./forwarder.ts";

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

test("a forwarder that is killed delivers every event, in order", async () => {
  const { faults, figures } = await forwardUnderKills(500, 5, 1);
  expect(faults).toEqual([]);
  expect(figures).toMatchObject({ events: 500, kills: 5 });
});
