/** More work than places: whose turn it is, and who is refused. */
import { expect, test } from "bun:test";
import { lateAfterMs } from "./overload.ts";
import { Semaphore } from "./semaphore.ts";

/** Work of a garden that ends when the test says so. */
function start(semaphore: Semaphore, garden: string, started: string[] = []) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const run = semaphore.run(garden, () => {
    started.push(garden);
    return promise;
  });
  return { end: resolve, result: run.catch((error) => error.message) };
}

test("a bounded number runs, of a garden too, and gardens take turns for the next place", async () => {
  const semaphore = new Semaphore(3, 2);
  const started: string[] = [];
  const works = ["hog", "hog", "hog", "hog", "ann", "bob"].map((garden) =>
    start(semaphore, garden, started),
  );
  expect([started, semaphore.waiting]).toEqual([["hog", "hog", "ann"], 3]);
  for (const [index, { end }] of works.entries()) {
    end();
    for (let tick = 0; tick < 3; tick++) await new Promise(setImmediate);
    expect(started).toHaveLength(Math.min(6, index + 4));
  }
  expect(started).toEqual(["hog", "hog", "ann", "hog", "bob", "hog"]);
});

test("work that fails makes room, and work that waited too long is refused", async () => {
  let nowMs = 0;
  const semaphore = new Semaphore(1, 1, () => nowMs);
  const failing = semaphore.run("ann", () => Promise.reject(new Error("the disk is gone")));
  expect(await failing.catch(({ message }) => message)).toBe("the disk is gone");
  const first = start(semaphore, "ann");
  const late = start(semaphore, "ann");
  nowMs += lateAfterMs + 10;
  const next = start(semaphore, "ann");
  first.end();
  next.end();
  expect(await late.result).toContain("cannot keep up");
  expect(await next.result).toBeUndefined();
});
