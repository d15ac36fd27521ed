/** More work than permits: how much runs, whose turn it is, and what is refused. */
import { expect, test } from "bun:test";
import { lateAfterMs } from "./overload.ts";
import { Semaphore } from "./semaphore.ts";

/** Notes the garden in `started` when the work starts. The work ends when the test calls `end`. */
function start(semaphore: Semaphore, garden: string, started: string[] = []) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const running = semaphore.run(garden, () => {
    started.push(garden);
    return promise;
  });
  return { end: resolve, result: running.catch((error) => error.message) };
}

async function waitForTicks(): Promise<void> {
  for (let tick = 0; tick < 3; tick++) await new Promise(setImmediate);
}

test("as much runs as there are permits, in total and for each garden", () => {
  const semaphore = new Semaphore(3, 2);
  const started: string[] = [];
  for (const garden of ["hog", "hog", "hog", "hog", "ann", "bob"]) {
    start(semaphore, garden, started);
  }
  expect(started).toEqual(["hog", "hog", "ann"]);
  expect(semaphore.waiting).toBe(3);
});

test("gardens take turns for the next permit, one at a time", async () => {
  const semaphore = new Semaphore(3, 2);
  const started: string[] = [];
  const works = ["hog", "hog", "hog", "hog", "ann", "bob"].map((garden) =>
    start(semaphore, garden, started),
  );
  const startedAfterEach: number[] = [];
  for (const { end } of works) {
    end();
    await waitForTicks();
    startedAfterEach.push(started.length);
  }
  expect(started).toEqual(["hog", "hog", "ann", "hog", "bob", "hog"]);
  expect(startedAfterEach).toEqual([4, 5, 6, 6, 6, 6]);
});

test("work that fails returns its permit", async () => {
  const semaphore = new Semaphore(1, 1);
  const failing = semaphore.run("ann", () => Promise.reject(new Error("the disk is gone")));
  expect(await failing.catch(({ message }) => message)).toBe("the disk is gone");
  const next = start(semaphore, "ann");
  next.end();
  expect(await next.result).toBeUndefined();
});

test("work that has waited too long is refused, and later work still runs", async () => {
  let nowMs = 0;
  const semaphore = new Semaphore(1, 1, () => nowMs);
  const running = start(semaphore, "ann");
  const late = start(semaphore, "ann");
  nowMs += lateAfterMs + 10;
  const next = start(semaphore, "ann");
  running.end();
  next.end();
  expect(await late.result).toContain("cannot keep up");
  expect(await next.result).toBeUndefined();
});
