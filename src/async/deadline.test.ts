/** Work that is done in time, and work that isn't. */
import { expect, test } from "bun:test";
import { deadline } from "./deadline.ts";

const onLate = () => "late";
const never = new Promise<string>(() => {});

test("work that ends in time keeps its result or its error", async () => {
  expect(await deadline(Promise.resolve("done"), 60_000, onLate)).toBe("done");
  const failing = deadline(Promise.reject(new Error("no disk")), 60_000, onLate);
  expect(await failing.catch(({ message }) => message)).toBe("no disk");
});

test("work that takes longer is given up, with a result or an error", async () => {
  expect(await deadline(never, 1, onLate)).toBe("late");
  expect(await deadline(never, -5, onLate)).toBe("late");
  const refuse = () => {
    throw new Error("too late");
  };
  expect(await deadline(never, 1, refuse).catch(({ message }) => message)).toBe("too late");
});

test("a failure after the deadline is ignored", async () => {
  const { promise, reject } = Promise.withResolvers<string>();
  expect(await deadline(promise, 1, onLate)).toBe("late");
  reject(new Error("nobody waits for this"));
  await new Promise(setImmediate);
});
