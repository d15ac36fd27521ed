/** How many writes may wait for a commit, and for how long it may be foreseen that they would. */
import { expect, jest, test } from "bun:test";
import type { Outcome, Write } from "../domain/storage.ts";
import { GroupCommit, type GroupCommitOptions, groupCommitDefaults } from "./group-commit.ts";

const write: Write = { kind: "delete", garden: "g", id: 1n };
const realImmediate = setImmediate;

/** A storage whose commits end when the test says so, and a count of what became of the writes. */
function create(options: Partial<GroupCommitOptions>) {
  const commits: { writes: number; end: () => void }[] = [];
  const storage = {
    apply(writes: readonly Write[]) {
      const { promise, resolve } = Promise.withResolvers<readonly Outcome[]>();
      const end = () => resolve(writes.map(() => ({ kind: "missing" })));
      commits.push({ writes: writes.length, end });
      return promise;
    },
  };
  const group = new GroupCommit(storage, { ...groupCommitDefaults, onCommit() {}, ...options });
  const counts = { done: 0, unavailable: 0 };
  const writeMany = (count: number) => {
    for (let index = 0; index < count; index++) {
      group.write(write).then(
        () => counts.done++,
        (error: { code: "unavailable" }) => counts[error.code]++,
      );
    }
  };
  return { group, commits, counts, writeMany };
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) {
    if (jest.isFakeTimers()) jest.advanceTimersByTime(0);
    await new Promise((resolve) => realImmediate(resolve));
  }
}

test("as many may wait as the bound says, and one more is refused at once", async () => {
  const { commits, counts, writeMany, group } = create({ waitingWritesMax: 3 });
  writeMany(2);
  expect(group.isFull).toBe(false);
  writeMany(1);
  expect(group.isFull).toBe(true);
  writeMany(1);
  await settle();
  expect(counts).toEqual({ done: 0, unavailable: 1 });
  commits[0]?.end();
  await settle();
  expect(counts).toEqual({ done: 3, unavailable: 1 });
});

test("writes whose commit is under way do not count", async () => {
  const { commits, counts, writeMany } = create({ waitingWritesMax: 2 });
  writeMany(2);
  await settle();
  writeMany(3);
  await settle();
  expect(counts).toEqual({ done: 0, unavailable: 1 });
  for (const index of [0, 1]) {
    commits[index]?.end();
    await settle();
  }
  expect(counts).toEqual({ done: 4, unavailable: 1 });
  expect(commits.map(({ writes }) => writes)).toEqual([2, 2]);
});

test("a burst before the first commit is taken, however long the service has been idle", async () => {
  jest.useFakeTimers();
  try {
    const { commits, counts, writeMany } = create({ groupWritesMax: 2, patienceMs: 500 });
    jest.advanceTimersByTime(60_000);
    writeMany(4);
    for (const index of [0, 1]) {
      await settle();
      commits[index]?.end();
    }
    await settle();
    expect(counts).toEqual({ done: 4, unavailable: 0 });
  } finally {
    jest.useRealTimers();
  }
});

test("the pace is that of single commits, however long there has been no pause between them", async () => {
  jest.useFakeTimers();
  try {
    const { group, commits, writeMany } = create({ groupWritesMax: 2, patienceMs: 500 });
    writeMany(2);
    for (const index of [0, 1, 2, 3]) {
      await settle();
      writeMany(2);
      jest.advanceTimersByTime(240);
      expect(group.isFull).toBe(false);
      commits[index]?.end();
    }
  } finally {
    jest.useRealTimers();
  }
});

/** With groups of 10 and a patience of 500 ms; the commit under way began `runningMs` ago. */
async function tryWith(lastMs: number, runningMs: number, waiting: number): Promise<boolean> {
  jest.useFakeTimers();
  try {
    const { commits, writeMany, group } = create({ groupWritesMax: 10, patienceMs: 500 });
    writeMany(1);
    await settle();
    jest.advanceTimersByTime(lastMs);
    commits[0]?.end();
    await settle();
    writeMany(1);
    await settle();
    writeMany(waiting);
    jest.advanceTimersByTime(runningMs);
    return group.isFull;
  } finally {
    jest.useRealTimers();
  }
}

test.each([
  ["what fits into the next group, however slow commits are", 9_000, 400, 9, false],
  ["five groups that take 80 ms each", 80, 0, 50, false],
  ["five groups that take 101 ms each", 101, 0, 50, true],
  ["seven groups that take 80 ms each", 80, 0, 70, true],
  ["one group behind a commit that has run for 450 ms", 1, 450, 10, false],
  ["one group behind a commit that has run for 501 ms", 1, 501, 10, true],
  ["one group, and a part of the next, behind such a one of 450 ms", 1, 450, 19, false],
])("behind %s", async (_what, lastMs, runningMs, waiting, isFull) => {
  expect(await tryWith(lastMs, runningMs, waiting)).toBe(isFull);
});
