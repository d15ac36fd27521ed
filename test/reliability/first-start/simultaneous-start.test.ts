/** Ten instances on an empty database, as when they are all deployed at once. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { startAtOnce } from "./simultaneous-start.ts";

setDefaultTimeout(60_000);

test("ten instances that start at once migrate an empty database once, and all serve it", async () => {
  expect(await startAtOnce()).toEqual([]);
});
