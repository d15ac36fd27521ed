/** Ten instances on an empty database, as when they are all deployed at once. */
import { expect, test } from "bun:test";
import { startAtOnce } from "./simultaneous-start.ts";

test("ten instances that start at once migrate an empty database once, and all serve it", async () => {
  expect(await startAtOnce()).toEqual([]);
}, 60_000);
