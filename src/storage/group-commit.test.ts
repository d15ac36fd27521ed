/** Group commit above an engine that the test drives: groups, failures, deadline, drain. */
import { beforeEach, describe, expect, jest, test } from "bun:test";
import { PlantStoreError } from "../domain/errors.ts";
import type { Outcome, Write } from "../domain/storage.ts";
import { GroupCommit, type GroupCommitOptions } from "./group-commit.ts";

/** One call of `apply`: which writes it was given, and how it ends when the test says so. */
interface Commit {
  readonly ids: bigint[];
  succeed(): void;
  fail(error: unknown): void;
}

let commits: Commit[];
let committed: number[];

beforeEach(() => {
  commits = [];
  committed = [];
});

function create(options: Partial<GroupCommitOptions> = {}): GroupCommit {
  const storage = {
    apply(writes: readonly Write[]) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly Outcome[]>();
      const ids = writes.map((write) => write.id ?? 0n);
      const outcomes = ids.map((id): Outcome => ({ kind: "created", id, replayed: false }));
      commits.push({ ids, succeed: () => resolve(outcomes), fail: reject });
      return promise;
    },
  };
  return new GroupCommit(storage, {
    groupWritesMax: 100,
    deadlineMs: 60_000,
    onCommit: (writes) => committed.push(writes),
    ...options,
  });
}

function deletion(id: number): Write {
  return { kind: "delete", garden: "g", id: BigInt(id) };
}

/** What each write came to: the id of its outcome, or the code or text of its error. */
function writeAll(group: GroupCommit, ids: readonly number[]): Promise<unknown[]> {
  const outcomes = ids.map((id) =>
    group.write(deletion(id)).then(
      (outcome) => ("id" in outcome ? Number(outcome.id) : outcome.kind),
      (error) => error.code ?? error.message,
    ),
  );
  return Promise.all(outcomes);
}

/** Lets everything that can go on without the test go on. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

describe("a group", () => {
  test("holds the writes of one turn, in their order, and answers each with its own outcome", async () => {
    const outcomes = writeAll(create(), [3, 1, 2]);
    await settle();
    expect(commits.map((commit) => commit.ids)).toEqual([[3n, 1n, 2n]]);
    commits[0]?.succeed();
    expect(await outcomes).toEqual([3, 1, 2]);
    expect(committed).toEqual([3]);
  });

  test("is answered only after its commit", async () => {
    let isAnswered = false;
    const outcomes = writeAll(create(), [1]).then(() => {
      isAnswered = true;
    });
    await settle();
    expect(isAnswered).toBe(false);
    commits[0]?.succeed();
    await outcomes;
    expect(isAnswered).toBe(true);
  });

  test("gathers what arrives while a commit is under way, and waits for its end", async () => {
    const group = create();
    const first = writeAll(group, [1]);
    await settle();
    const second = writeAll(group, [2]);
    await settle();
    const third = writeAll(group, [3]);
    await settle();
    expect(commits).toHaveLength(1);
    commits[0]?.succeed();
    expect(await first).toEqual([1]);
    await settle();
    expect(commits[1]?.ids).toEqual([2n, 3n]);
    commits[1]?.succeed();
    expect([await second, await third]).toEqual([[2], [3]]);
    expect(committed).toEqual([1, 2]);
  });

  test.each([
    [1, [1]],
    [3, [3]],
    [4, [3, 1]],
    [7, [3, 3, 1]],
  ])("takes at most 3 of %i writes when 3 is its bound", async (count, expected) => {
    const group = create({ groupWritesMax: 3 });
    const ids = Array.from({ length: count }, (_, index) => index);
    const outcomes = writeAll(group, ids);
    for (let index = 0; index < expected.length; index++) {
      await settle();
      commits[index]?.succeed();
    }
    expect(await outcomes).toEqual(ids);
    expect(commits.map((commit) => commit.ids.length)).toEqual(expected);
  });
});

describe("a failure", () => {
  test("of the commit fails its whole group and nothing is tried again", async () => {
    const outcomes = writeAll(create(), [1, 2, 3]);
    await settle();
    commits[0]?.fail(new PlantStoreError("storage-full", "The storage is full."));
    expect(await outcomes).toEqual(["storage-full", "storage-full", "storage-full"]);
    expect(commits).toHaveLength(1);
    expect(committed).toEqual([]);
  });

  test("of one write fails it alone", async () => {
    const outcomes = writeAll(create(), [1, 2, 3]);
    await settle();
    commits[0]?.fail(new Error("the second is bad"));
    for (const [index, isGood] of [true, false, true].entries()) {
      await settle();
      expect(commits[index + 1]?.ids).toEqual([BigInt(index + 1)]);
      expect(commits).toHaveLength(index + 2);
      if (isGood) commits[index + 1]?.succeed();
      else commits[index + 1]?.fail(new Error("this one is bad"));
    }
    expect(await outcomes).toEqual([1, "this one is bad", 3]);
    expect(committed).toEqual([1, 1]);
  });

  test("of a write that was alone is not tried again", async () => {
    const outcomes = writeAll(create(), [1]);
    await settle();
    commits[0]?.fail(new Error("bad"));
    expect(await outcomes).toEqual(["bad"]);
    expect(commits).toHaveLength(1);
  });

  test("does not stop the writes that come after it", async () => {
    const group = create();
    const first = writeAll(group, [1]);
    await settle();
    const second = writeAll(group, [2]);
    commits[0]?.fail(new PlantStoreError("unavailable", "The disk is gone."));
    expect(await first).toEqual(["unavailable"]);
    await settle();
    commits[1]?.succeed();
    expect(await second).toEqual([2]);
  });
});

describe("the deadline", () => {
  const deadlineMs = 1000;

  /** Starts one commit, with another write behind it, and lets the deadline pass. */
  async function overstay(group: GroupCommit): Promise<unknown[]> {
    const first = writeAll(group, [1]);
    await settle();
    const second = writeAll(group, [2]);
    return Promise.all([first, second]);
  }

  test("tells the group and all behind it that the outcome is unknown", async () => {
    const group = create({ deadlineMs: 1 });
    expect(await overstay(group)).toEqual([["unavailable"], ["unavailable"]]);
    expect(group.isStuck).toBe(true);
    expect(await writeAll(group, [3])).toEqual(["unavailable"]);
  });

  test("is over when the commit comes back, and writes are taken again", async () => {
    const group = create({ deadlineMs: 200 });
    await overstay(group);
    commits[0]?.succeed();
    await settle();
    expect(group.isStuck).toBe(false);
    const outcomes = writeAll(group, [3]);
    await settle();
    expect(commits.map((commit) => commit.ids)).toEqual([[1n], [3n]]);
    commits[1]?.succeed();
    expect(await outcomes).toEqual([3]);
  });

  test("is not reached one moment before it, and is at it", async () => {
    const group = create({ deadlineMs });
    const realImmediate = setImmediate;
    jest.useFakeTimers();
    try {
      const outcomes = writeAll(group, [1]);
      jest.advanceTimersByTime(0);
      await new Promise((resolve) => realImmediate(resolve));
      jest.advanceTimersByTime(deadlineMs - 1);
      expect(group.isStuck).toBe(false);
      jest.advanceTimersByTime(1);
      expect(group.isStuck).toBe(true);
      expect(await outcomes).toEqual(["unavailable"]);
    } finally {
      jest.useRealTimers();
    }
  });
});

describe("drain", () => {
  test("returns at once when nothing is under way", async () => {
    const group = create();
    await group.drain();
    const outcomes = writeAll(group, [1]);
    await settle();
    commits[0]?.succeed();
    await outcomes;
    await group.drain();
  });
});
