/** What people read when the service refuses a call. */
import { expect, test } from "bun:test";
import { openState } from "../test/open-state.ts";
import { describeError } from "./api.ts";

const { openGarden } = openState();

test("an error names the plant and the field, not their places in JSON", async () => {
  const { api } = await openGarden(["Fern", "Ivy"]);
  const read = (call: Promise<unknown>) => call.then(() => "It did not fail.", describeError);
  expect(await read(api.createMany([{ name: "Moss" }, { name: "" }, { name: " " }]))).toBe(
    "Plant 2: name must not be empty (and 1 more).",
  );
  expect(await read(api.updateMany([1, 2], { tag: "x".repeat(101) }))).toBe(
    "Tag must have at most 100 characters (Unicode code points).",
  );
  expect(await read(api.deleteMany([1, 2n ** 63n]))).toBe(
    "Id 2 must not be more than 9223372036854775807.",
  );
  expect(await read(api.page({ q: "x".repeat(101) }))).toBe(
    "Search must have at most 100 characters (Unicode code points).",
  );
});
