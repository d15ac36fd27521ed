/** What people read when the service refuses a call. */
import { expect, test } from "bun:test";
import { openState } from "../test/open-state.ts";
import { type Api, describeError } from "./api.ts";

const { openGarden } = openState();

/** A garden with two plants, and what the page says of a call that it refuses. */
async function readError(call: (api: Api) => Promise<unknown>) {
  const { api } = await openGarden([{ name: "Fern" }, { name: "Ivy" }]);
  return call(api).then(() => "It did not fail.", describeError);
}

test("an error in many new plants says which plant and field it is", async () => {
  const error = await readError((api) =>
    api.createMany([{ name: "Moss" }, { name: "" }, { name: " " }]),
  );

  expect(error).toBe("Plant 2: name must not be empty (and 1 more).");
});

test("an error in a change of many plants names the field", async () => {
  const error = await readError((api) => api.updateMany([1, 2], { tag: "x".repeat(101) }));

  expect(error).toBe("Tag must have at most 100 characters (Unicode code points).");
});

test("an error in ids says which of them it is", async () => {
  const error = await readError((api) => api.deleteMany([1, 2n ** 63n]));

  expect(error).toBe("Id 2 must not be more than 9223372036854775807.");
});

test("an error in a query calls it a search, as the page does", async () => {
  const error = await readError((api) => api.page({ q: "x".repeat(101) }));

  expect(error).toBe("Search must have at most 100 characters (Unicode code points).");
});
