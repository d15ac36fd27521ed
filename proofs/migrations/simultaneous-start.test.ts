/** Ten instances on an empty database, as when all are deployed at once. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { startAtOnce } from "./prove.ts";

setDefaultTimeout(120_000);

test("ten instances that start at once migrate an empty database once, and all of them serve it", async () => {
  expect(await startAtOnce()).toEqual([]);
});
