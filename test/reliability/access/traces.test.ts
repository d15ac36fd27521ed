/** No token is in anything that the program writes, wherever it was sent. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { gatherTraces } from "./traces.ts";

setDefaultTimeout(120_000);

test.each(["json", "text"] as const)(
  "no token is in anything it writes, with a log of %s, and all refusals are one",
  async (log) => {
    const { found, places, tokens, refusals } = await gatherTraces(log);
    expect(found).toEqual([]);
    expect(refusals).toEqual([expect.stringMatching(/^401 /)]);
    expect(tokens).toBeGreaterThan(20);
    expect(places).toEqual(
      expect.arrayContaining([
        "standard output",
        "/metrics",
        "spans",
        "plants.db-wal while it runs",
        "plants.csv while it runs",
      ]),
    );
  },
);
