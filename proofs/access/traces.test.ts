/** The program writes no token anywhere, wherever it was sent. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { gatherTraces } from "./traces.ts";

setDefaultTimeout(120_000);

test.each(["json", "text"] as const)(
  "no token is in what it writes, with a log of %s",
  async (log) => {
    const { found, places } = await gatherTraces(log);
    expect(found).toEqual([]);
    const some = ["/metrics", "plants.db-wal while it runs", "plants.csv while it runs"];
    expect(places).toEqual(expect.arrayContaining(some));
  },
);
