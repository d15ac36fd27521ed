/** Group commit above an engine that the test drives: groups, failures, deadline, drain. */
import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { create as createPlant, remove } from "../../testing/tested-storage.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { sliceCharactersMax, slicePlantsMax } from "../domain/plants.ts";
import type { Outcome, Write } from "../domain/ports.ts";
import { lateAfterMs } from "../limits/overload.ts";
import { deadlineMs, GroupCommit } from "./group-commit.ts";
import { attemptMsMin, heldCharactersMax, heldMsMax, heldRequestsMax } from "./held-gardens.ts";
import { groupWritesMax } from "./write-group.ts";

const realImmediate = setImmediate;

/** The clock that only a test moves. */
let nowMs: number;
beforeEach(() => {
  nowMs = 0;
});
afterEach(() => void jest.useRealTimers());

async function ticks(count = 6): Promise<void> {
  for (let index = 0; index < count; index++) {
    if (jest.isFakeTimers()) jest.advanceTimersByTime(0);
    await new Promise((resolve) => realImmediate(resolve));
  }
}

const overloaded = expect.stringContaining("cannot keep up");

interface Commit {
  readonly ids: number[];
  /** How long it may wait for a garden; absent if it passes over it. */
  readonly waitMs: number | undefined;
  /** Passes over the writes of these gardens. */
  succeed(...held: string[]): void;
  fail(error: unknown): void;
}

function create() {
  /** The calls of `apply`, with the ids of their writes. Each ends when the test says so. */
  const commits: Commit[] = [];
  const committed: number[] = [];
  /** What the observer was told: a commit is stuck, or no longer. */
  const stuckNotes: boolean[] = [];
  const apply = (writes: readonly Write[], untilMs?: number) => {
    const { promise, resolve, reject } = Promise.withResolvers<readonly (Outcome | undefined)[]>();
    const ids = writes.map(({ id }) => Number(id));
    const outcomeOf = (id: number): Outcome => ({
      kind: "created",
      id: BigInt(id),
      replayed: false,
    });
    commits.push({
      ids: [...new Set(ids)],
      waitMs: untilMs && untilMs - nowMs,
      succeed: (...held) =>
        resolve(ids.map((id) => (held.includes(gardenOf(id)) ? undefined : outcomeOf(id)))),
      fail: reject,
    });
    return promise;
  };
  const storage = {
    apply: () => Promise.reject(new Error("Gardens may be held.")),
    contended: { waitsMax: 2, applyUnlessHeld: apply, applyBefore: apply },
  };
  const observer = {
    onCommit: (outcomes: readonly Outcome[]) => committed.push(outcomes.length),
    onStuck: (isStuck: boolean) => stuckNotes.push(isStuck),
  };
  const group = new GroupCommit(storage, observer, () => nowMs);

  /**
   * Writes so often to the plant with this id, whose first digit is the garden. Resolves to the id
   * of the last outcome, or to the message of the error.
   */
  async function send(id: number, writes = 1, isContinued = false): Promise<unknown> {
    const write = remove(BigInt(id), gardenOf(id));
    try {
      const outcomes = await group.writeAll(Array(writes).fill(write), isContinued);
      expect(outcomes).toHaveLength(writes);
      return Number((outcomes.at(-1) as { id: bigint }).id);
    } catch (error) {
      return (error as Error).message;
    }
  }
  const sendAll = (...ids: number[]) => Promise.all(ids.map((id) => send(id)));

  /** Ends the next commits, one after the other. */
  async function end(...failures: (Error | undefined)[]): Promise<void> {
    for (const failure of failures) {
      if (failure) commits.at(-1)?.fail(failure);
      else commits.at(-1)?.succeed();
      await ticks();
    }
  }

  /** A first commit, during which the test sends what it is about. */
  async function begin(): Promise<void> {
    void send(9);
    await ticks();
  }
  const groups = () => commits.map(({ ids }) => ids);
  return { group, commits, committed, stuckNotes, send, sendAll, end, begin, groups };
}

/** The first digit. */
function gardenOf(id: number): string {
  return String(id).charAt(0);
}

const ok = undefined;

test("a group has the writes of one commit's time in order, and resolves each after its own", async () => {
  const { committed, sendAll, send, begin, end, groups } = create();
  await begin();
  const results = Promise.all([sendAll(3, 1), send(2)]);
  await ticks();
  expect(groups()).toEqual([[9]]);
  await end(ok, ok);
  expect(await results).toEqual([[3, 1], 2]);
  expect(groups()).toEqual([[9], [3, 1, 2]]);
  expect(committed).toEqual([1, 3]);
});

test("the next write of a client that is alone doesn't wait for the end of the tick", async () => {
  const { send, end, groups } = create();
  const first = send(1);
  await ticks();
  await end(ok);
  await first;
  void send(2);
  expect(groups()).toEqual([[1], [2]]);
});

test("a group has a bound, and so have each garden's text, and its writes while others wait", async () => {
  const { group, send, sendAll, begin, end, groups } = create();
  await begin();
  const results = Promise.all([send(10, slicePlantsMax - 1), sendAll(11, 12, 20, 21)]);
  await end(ok);
  const large = [30, 40, 50, 60, 70].map((id) => send(id, groupWritesMax / 4));
  await end(ok);
  const alone = [80, 81, 82, 83, 84].map((id) => send(id, groupWritesMax / 4));
  await end(ok, ok, ok, ok);
  expect(await results).toEqual([10, [11, 12, 20, 21]]);
  expect(await Promise.all([...large, ...alone])).toHaveLength(10);
  expect(groups()).toEqual([
    [9],
    [10, 20, 11, 21],
    [12, 30, 40, 50],
    [60, 70, 80],
    [81, 82, 83, 84],
  ]);
  const name = "x".repeat(sliceCharactersMax);
  const long = [6n, 7n].map((id) => group.write(createPlant({ garden: "1", id, name })));
  await ticks();
  await end(ok, ok);
  expect(await Promise.all(long)).toHaveLength(2);
  expect(groups().slice(-2)).toEqual([[6], [7]]);
});

describe("a failure", () => {
  const full = new PlantStoreError("storage-full", "Full.");
  const away = new PlantStoreError("unavailable", "Away.");
  const bad = new Error("bad");

  test.each<[what: string, ends: (Error | undefined)[], results: unknown[], groups: number[][]]>([
    ["of the storage fails the whole group", [full], Array(4).fill("Full."), []],
    [
      "by one write fails only that one",
      [bad, ok, bad, ok, ok],
      [10, "bad", 30, 21],
      [[10], [20], [30], [21]],
    ],
  ])("%s", async (_, ends, expected, again) => {
    const { sendAll, send, end, groups } = create();
    const results = sendAll(10, 20, 30, 21);
    await ticks();
    await end(...ends);
    expect(await results).toEqual(expected);
    expect(groups()).toEqual([[10, 20, 30, 21], ...again]);
    const later = send(31);
    await ticks();
    await end(ok);
    expect(await later).toBe(31);
  });

  test("of a storage that can't be used ends what has waited for it too long, and nothing else", async () => {
    const { send, begin, end, groups } = create();
    await begin();
    const early = send(2);
    nowMs += lateAfterMs + 10;
    const late = send(3);
    await end(away, ok);
    expect(await early).toEqual(expect.stringContaining("storage cannot be used"));
    expect(await late).toBe(3);
    expect(groups()).toEqual([[9], [3]]);
  });
});

test("what has waited half a second and still doesn't fit is refused, except the rest of a bulk", async () => {
  const { send, begin, end } = create();
  await begin();
  const early = [send(10, slicePlantsMax), send(11), send(12, slicePlantsMax, true), send(20)];
  nowMs += lateAfterMs + 10;
  const late = send(13);
  await end(ok, ok, ok, ok);
  expect(await Promise.all(early)).toEqual([10, overloaded, 12, 20]);
  expect(await late).toBe(13);
});

test("past the deadline, the outcome is unknown, and what waits after it was not tried", async () => {
  jest.useFakeTimers();
  const { stuckNotes, send, begin, end, groups } = create();
  const stuck = send(8);
  await ticks(1);
  const after = send(2);
  jest.advanceTimersByTime(deadlineMs - 1);
  expect(stuckNotes).toEqual([]);
  jest.advanceTimersByTime(1);
  expect(stuckNotes).toEqual([true]);
  expect(await stuck).toEqual(expect.stringContaining("outcome is unknown"));
  expect(await Promise.all([after, send(3)])).toEqual([overloaded, overloaded]);
  await begin();
  expect(groups()).toEqual([[8]]);
  await end(ok);
  expect(stuckNotes).toEqual([true, false]);
  const later = send(4);
  await ticks();
  await end(ok);
  expect(await later).toBe(4);
});

describe("writes to a garden that somebody else holds", () => {
  const held = expect.stringMatching(/another instance is busy with it, or another program/);

  test("wait for it in commits of their own, while other gardens' go on", async () => {
    const { sendAll, send, commits, groups } = create();
    const first = sendAll(10, 20, 11);
    await ticks();
    const queued = send(12);
    commits[0]?.succeed("1");
    expect((await Promise.race([first, ticks(20)])) === undefined).toBe(true);
    const other = send(21);
    await ticks(20);
    expect(groups()).toEqual([[10, 20, 11], [10, 11, 12], [21]]);
    expect(commits.map(({ waitMs }) => waitMs !== undefined)).toEqual([false, true, false]);
    commits[2]?.succeed();
    expect(await other).toBe(21);
    const later = send(13);
    commits[1]?.succeed();
    expect(await first).toEqual([10, 20, 11]);
    expect(await queued).toBe(12);
    await ticks(20);
    expect(groups().at(-1)).toEqual([13]);
    commits.at(-1)?.succeed();
    expect(await later).toBe(13);
  });

  test("share commits with other gardens' again once none of them waits", async () => {
    const { group, sendAll, send, commits, groups } = create();
    const first = send(10);
    await ticks();
    commits[0]?.succeed("1");
    await ticks(20);
    commits[1]?.succeed();
    expect(await first).toBe(10);
    await group.drain();
    const next = send(12);
    const later = sendAll(11, 20);
    commits.at(-1)?.succeed();
    expect(await next).toBe(12);
    await ticks();
    expect(groups().at(-1)).toEqual([11, 20]);
    commits.at(-1)?.succeed();
    expect(await later).toEqual([11, 20]);
  });

  test("are refused five seconds after they were queued, and say why", async () => {
    const { send, commits } = create();
    const early = send(10);
    await ticks();
    commits[0]?.succeed("1");
    await ticks(20);
    expect(commits[1]?.waitMs).toBe(heldMsMax);
    nowMs += heldMsMax - 1_000;
    const late = send(11);
    commits[1]?.succeed("1");
    await ticks(20);
    expect(commits[2]?.ids).toEqual([10, 11]);
    expect(commits[2]?.waitMs).toBe(1_000);
    nowMs += 1_000;
    commits[2]?.succeed("1");
    expect(await early).toEqual(held);
    await ticks(20);
    commits[3]?.succeed();
    expect(await late).toBe(11);
  });

  test("wait for a moment longer than that together with later ones", async () => {
    const { send, commits } = create();
    const result = send(10);
    await ticks();
    nowMs += heldMsMax - 1;
    commits[0]?.succeed("1");
    await ticks(20);
    expect(commits[1]?.waitMs).toBeCloseTo(attemptMsMin);
    commits[1]?.succeed();
    expect(await result).toBe(10);
  });

  test("are bounded in number and text, except the rest of a bulk", async () => {
    const { group, send, commits } = create();
    const waiting = [send(10)];
    await ticks();
    commits[0]?.succeed("1");
    await ticks(20);
    for (let count = 0; count < heldRequestsMax; count++) waiting.push(send(11));
    expect(await send(12)).toEqual(held);
    waiting.push(send(13, 1, true));
    const name = "x".repeat(heldCharactersMax);
    const long = [group.write(createPlant({ garden: "2", id: 20n }))];
    await ticks();
    commits.at(-1)?.succeed("2");
    await ticks(20);
    long.push(group.write(createPlant({ garden: "2", id: 21n, name })));
    const tooLong = group
      .write(createPlant({ garden: "2", id: 22n }))
      .catch(({ message }) => message);
    expect(await tooLong).toEqual(held);
    for (let index = 1; index < commits.length; index++) {
      commits[index]?.succeed();
      await ticks(20);
    }
    expect(await Promise.all(waiting)).toHaveLength(heldRequestsMax + 2);
    expect(await Promise.all(long)).toHaveLength(2);
  });

  test("wait for those before them, even while another garden's are committed", async () => {
    const { sendAll, send, commits, groups } = create();
    const first = sendAll(10, 20);
    await ticks();
    commits[0]?.succeed("1", "2");
    await ticks(20);
    commits[2]?.succeed();
    await ticks(20);
    const next = send(11);
    await ticks(20);
    expect(groups()).toEqual([[10, 20], [10], [20]]);
    commits[1]?.succeed();
    expect(await first).toEqual([10, 20]);
    await ticks(20);
    expect(groups().slice(3)).toEqual([[11]]);
    commits[3]?.succeed();
    expect(await next).toBe(11);
  });

  test("are committed in their order, as many together as fit into a group", async () => {
    const { send, commits, groups } = create();
    const first = send(10);
    await ticks();
    commits[0]?.succeed("1");
    await ticks(20);
    const later = [send(11), send(12, groupWritesMax), send(13)];
    for (let index = 1; index <= 4; index++) {
      commits[index]?.succeed();
      await ticks(20);
    }
    expect(groups().slice(1)).toEqual([[10], [11], [12], [13]]);
    expect(await Promise.all([first, ...later])).toEqual([10, 11, 12, 13]);
  });

  test("take up their room again when their garden is still held", async () => {
    const { group, sendAll, commits } = create();
    const name = "x".repeat(heldCharactersMax);
    const long = group.write(createPlant({ garden: "1", id: 10n, name }));
    const others = sendAll(20, 30);
    await ticks();
    commits[0]?.succeed("1", "2", "3");
    await ticks(20);
    commits[1]?.succeed("1");
    await ticks(20);
    const more = group.write(createPlant({ garden: "1", id: 11n })).catch(({ message }) => message);
    await ticks(20);
    for (let index = 2; index < commits.length; index++) {
      commits[index]?.succeed();
      await ticks(20);
    }
    expect(await more).toEqual(held);
    expect(await long).toMatchObject({ id: 10n });
    expect(await others).toEqual([20, 30]);
  });

  test("wait for a bounded number of gardens at once, in turn", async () => {
    const { sendAll, commits, groups } = create();
    const results = sendAll(10, 20, 30);
    await ticks();
    commits[0]?.succeed("1", "2", "3");
    await ticks(20);
    expect(groups().slice(1)).toEqual([[10], [20]]);
    commits[1]?.succeed("1");
    await ticks(20);
    expect(groups().slice(3)).toEqual([[30]]);
    commits[2]?.succeed();
    await ticks(20);
    expect(groups().slice(4)).toEqual([[10]]);
    commits[3]?.succeed();
    commits[4]?.succeed();
    expect(await results).toEqual([10, 20, 30]);
  });
});
