/** The program writes no token anywhere, wherever it was sent. */
import { expect, test } from "bun:test";
import { gatherTraces } from "./traces.ts";

test("no token is in anything it writes", async () => {
  const { found, places, tokens } = await gatherTraces();
  expect(found).toEqual([]);
  expect(tokens).toBeGreaterThan(10);
  expect(places).toEqual(
    expect.arrayContaining([
      "standard output",
      "/metrics",
      "spans",
      "plants.db-wal while it runs",
      "plants.csv while it runs",
    ]),
  );
}, 120_000);
