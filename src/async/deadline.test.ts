/** Work that is done in time, and work that isn't. */
import { expect, test } from "bun:test";
import { deadline } from "./deadline.ts";

const onLate = () => "late";

test("work that ends in time keeps its result", async () => {
  expect(await deadline(Promise.resolve("done"), 1_000, onLate)).toBe("done");
});

test("work that fails in time keeps its error", async () => {
  const failing = Promise.reject(new Error("the disk is gone"));
  expect(await deadline(failing, 1_000, onLate).catch(({ message }) => message)).toBe(
    "the disk is gone",
  );
});

test("work that takes longer is given up", async () => {
  expect(await deadline(new Promise<string>(() => {}), 1, onLate)).toBe("late");
  expect(await deadline(new Promise<string>(() => {}), -5, onLate)).toBe("late");
});

test("what is thrown for late work is its failure", async () => {
  const refuse = () => {
    throw new Error("too late");
  };
  const waiting = deadline(new Promise<void>(() => {}), 1, refuse);
  expect(await waiting.catch(({ message }) => message)).toBe("too late");
});

test("a failure after the deadline is ignored", async () => {
  const { promise, reject } = Promise.withResolvers<string>();
  expect(await deadline(promise, 1, onLate)).toBe("late");
  reject(new Error("nobody waits for this"));
  await Bun.sleep(5);
});
