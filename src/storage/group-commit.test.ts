/** Group commit above an engine that the test drives: groups, failures, deadline, drain. */
import { afterEach, describe, expect, jest, mock, spyOn, test } from "bun:test";
import { remove } from "../../test/storage/tested-storage.ts";
import { queuedMsMax } from "../async/fair-queue.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { GardenLocked, type Outcome, type Write } from "../domain/ports.ts";
import { GroupCommit, type GroupCommitOptions, groupCommitDefaults } from "./group-commit.ts";

const realImmediate = setImmediate;

afterEach(() => {
  jest.useRealTimers();
  mock.restore();
});

/** From now on the clock shows that much more. */
function passTime(durationMs: number): void {
  const now = performance.now.bind(performance);
  spyOn(performance, "now").mockImplementation(() => now() + durationMs);
}

function create(options: Partial<GroupCommitOptions> = {}) {
  /** The calls of `apply`. Each ends when the test says so. */
  const commits: {
    ids: number[];
    succeed(): void;
    fail(error: unknown): void;
  }[] = [];
  const storage = {
    apply(writes: readonly Write[]) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly Outcome[]>();
      const outcomes = writes.map(
        ({ id = 0n }): Outcome => ({ kind: "created", id, replayed: false }),
      );
      const ids = writes.map(({ id }) => Number(id));
      commits.push({ ids, succeed: () => resolve(outcomes), fail: reject });
      return promise;
    },
  };
  const committed: number[] = [];
  const onCommit = (outcomes: readonly Outcome[]) => committed.push(outcomes.length);
  const group = new GroupCommit(storage, {
    ...groupCommitDefaults,
    slowMs: 1,
    onCommit,
    ...options,
  });
  /** The ids of outcomes and the messages of errors, in the order in which they came. */
  const settled: unknown[] = [];

  /** Resolves to what each write came to: the id of its outcome, or the message of its error. */
  function writeAll(...ids: readonly number[]): Promise<unknown[]> {
    const results = ids.map(async (id) => {
      // The garden is the first digit.
      const garden = String(id).charAt(0);
      const result = await group.write(remove(BigInt(id), garden)).then(
        (outcome) => ("id" in outcome ? Number(outcome.id) : outcome.kind),
        (error) => error.message,
      );
      settled.push(result);
      return result;
    });
    return Promise.all(results);
  }
  return { group, commits, committed, settled, writeAll };
}

async function tick(): Promise<void> {
  if (jest.isFakeTimers()) jest.advanceTimersByTime(0);
  await new Promise((resolve) => realImmediate(resolve));
}

async function ticks(count = 5): Promise<void> {
  for (let index = 0; index < count; index++) await tick();
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index);

describe("a group", () => {
  test("has the writes of one commit's time in order, and resolves each after its own", async () => {
    const { commits, committed, settled, writeAll } = create();
    const first = writeAll(3, 1, 2);
    await ticks();
    const second = writeAll(5);
    await ticks();
    const third = writeAll(4);
    await ticks();
    expect(commits.map(({ ids }) => ids)).toEqual([[3, 1, 2]]);
    expect(settled).toEqual([]);
    commits[0]?.succeed();
    expect(await first).toEqual([3, 1, 2]);
    await ticks();
    expect(commits[1]?.ids).toEqual([5, 4]);
    commits[1]?.succeed();
    expect(await Promise.all([second, third])).toEqual([[5], [4]]);
    expect(committed).toEqual([3, 2]);
  });

  test("takes as many writes as its bound says, and not one more", async () => {
    const { commits, writeAll } = create({ groupWritesMax: 3 });
    const outcomes = writeAll(...range(7));
    for (const index of range(3)) {
      await ticks();
      commits[index]?.succeed();
    }
    expect(await outcomes).toEqual(range(7));
    expect(commits.map(({ ids }) => ids.length)).toEqual([3, 3, 1]);
  });
});

describe("a failure", () => {
  test("of the storage fails the whole group, and nothing is retried", async () => {
    const { commits, committed, writeAll } = create();
    const outcomes = writeAll(1, 2);
    await ticks();
    const later = writeAll(3);
    commits[0]?.fail(new PlantStoreError("storage-full", "Full."));
    expect(await outcomes).toEqual(["Full.", "Full."]);
    await ticks();
    expect(commits[1]?.ids).toEqual([3]);
    commits[1]?.succeed();
    expect(await later).toEqual([3]);
    expect(committed).toEqual([1]);
  });

  test("of a storage that can't be used ends what has waited for it too long, and nothing else", async () => {
    const { commits, writeAll } = create();
    const first = writeAll(1);
    await ticks();
    const early = writeAll(2);
    passTime(queuedMsMax + 10);
    const late = writeAll(3);
    commits[0]?.fail(new PlantStoreError("unavailable", "Away."));
    expect(await first).toEqual(["Away."]);
    expect(await early).toEqual([expect.stringContaining("storage cannot be used")]);
    await ticks();
    commits[1]?.succeed();
    expect(await late).toEqual([3]);
    expect(commits.map(({ ids }) => ids)).toEqual([[1], [3]]);
  });

  test("by one write fails only that one", async () => {
    const { commits, committed, writeAll } = create();
    const outcomes = writeAll(1, 2, 3);
    await ticks();
    commits[0]?.fail(new Error("one of them is bad"));
    await ticks();
    commits[1]?.succeed();
    await ticks();
    commits[2]?.fail(new Error("this one is bad"));
    await ticks();
    commits[3]?.succeed();
    expect(await outcomes).toEqual([1, "this one is bad", 3]);
    expect(commits.map(({ ids }) => ids)).toEqual([[1, 2, 3], [1], [2], [3]]);
    expect(committed).toEqual([1, 1]);
  });
});

describe("gardens", () => {
  test("take turns in a group, and each has a bound in it", async () => {
    const { commits, writeAll } = create({ groupWritesMax: 6, gardenWritesMax: 3 });
    void writeAll(9);
    await ticks();
    const outcomes = writeAll(10, 11, 12, 13, 14, 20, 21, 30);
    commits[0]?.succeed();
    for (const index of [1, 2]) {
      await ticks();
      commits[index]?.succeed();
    }
    expect(await outcomes).toEqual([10, 11, 12, 13, 14, 20, 21, 30]);
    expect(commits.map(({ ids }) => ids)).toEqual([[9], [10, 20, 30, 11, 21, 12], [13, 14]]);
  });

  test("that are locked by another program are refused, for a second at once, and others go on", async () => {
    const { commits, writeAll } = create();
    const outcomes = writeAll(10, 20, 30, 21);
    await ticks();
    commits[0]?.fail(new GardenLocked());
    for (const failure of [undefined, new GardenLocked(), undefined]) {
      await ticks();
      if (failure) commits.at(-1)?.fail(failure);
      else commits.at(-1)?.succeed();
    }
    const locked = expect.stringContaining("has locked this garden");
    expect(await outcomes).toEqual([10, locked, 30, locked]);
    expect(await writeAll(22)).toEqual([locked]);
    passTime(1_000);
    const later = writeAll(23);
    await ticks();
    commits.at(-1)?.succeed();
    expect(await later).toEqual([23]);
    expect(commits.map(({ ids }) => ids)).toEqual([[10, 20, 30, 21], [10], [20, 21], [30], [23]]);
  });

  test("with more than fits are refused what has waited half a second, and nothing else is", async () => {
    const { commits, writeAll } = create({ gardenWritesMax: 1 });
    void writeAll(9);
    await ticks();
    const early = writeAll(10, 11, 12, 20);
    passTime(queuedMsMax + 10);
    const late = writeAll(13);
    commits[0]?.succeed();
    for (const index of [1, 2]) {
      await ticks();
      commits[index]?.succeed();
    }
    const overloaded = expect.stringContaining("cannot keep up");
    expect(await early).toEqual([10, overloaded, overloaded, 20]);
    expect(await late).toEqual([13]);
  });

  test("with more than fits never refuse the rest of a bulk", async () => {
    const { group, commits, writeAll } = create({ gardenWritesMax: 1 });
    void writeAll(9);
    await ticks();
    const early = writeAll(10, 11, 20);
    const rest = group.writeAll([remove(12n, "1"), remove(13n, "1")], true);
    passTime(queuedMsMax + 10);
    for (const index of [0, 1, 2]) {
      commits[index]?.succeed();
      await ticks();
    }
    const overloaded = expect.stringContaining("cannot keep up");
    expect(await early).toEqual([10, overloaded, 20]);
    expect(await rest).toHaveLength(2);
  });
});

describe("the deadline", () => {
  const deadlineMs = 1_000;
  const unknown = expect.stringContaining("outcome is unknown");
  const overloaded = expect.stringContaining("Nothing was changed");

  test("is not reached one moment before it, and is at it", async () => {
    jest.useFakeTimers();
    const { group, writeAll } = create({ deadlineMs });
    const outcomes = writeAll(1);
    await tick();
    jest.advanceTimersByTime(deadlineMs - 1);
    expect(group.isStuck).toBe(false);
    jest.advanceTimersByTime(1);
    expect(group.isStuck).toBe(true);
    expect(await outcomes).toEqual([unknown]);
  });

  test("leaves the outcome of the group unknown; what waits after it was not tried", async () => {
    const { writeAll } = create({ deadlineMs: 1 });
    const first = writeAll(1);
    await ticks(2);
    const second = writeAll(2);
    expect(await Promise.all([first, second])).toEqual([[unknown], [overloaded]]);
    expect(await writeAll(3)).toEqual([overloaded]);
  });
});

test("drain waits until every commit has ended and every write is resolved", async () => {
  const { group, commits, settled, writeAll } = create({ groupWritesMax: 1_000 });
  await group.drain();
  void writeAll(...range(1_001));
  await tick();
  let settledBefore = 0;
  const drained = group.drain().then(() => {
    settledBefore = settled.length;
  });
  commits[0]?.succeed();
  while (settled.length < 1_000) await tick();
  expect([settled.length, commits.length, settledBefore]).toEqual([1_000, 2, 0]);
  commits[1]?.succeed();
  await drained;
  expect(settledBefore).toBe(1_001);
});
