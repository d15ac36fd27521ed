/** Paths that a proxy may change on their way, so that the contract table does not have them. */
import { expect, test } from "bun:test";
import { operations } from "./operations.ts";
import { createRouter } from "./router.ts";

const find = createRouter("", operations);

test.each(["", "plants", "//plants", "/plants//1", "/plants/1/", "/constructor", "/%zz"])(
  "%p leads nowhere",
  (path) => {
    expect(find(path)).toBeUndefined();
  },
);

test.each(["%31", "%zz", "-7"])("the id %p comes as it was sent", (id) => {
  expect(find(`/plants/${id}`)?.variable).toBe(id);
});
