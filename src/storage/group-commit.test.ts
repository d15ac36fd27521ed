/** Group commit above an engine that the test drives: groups, failures, deadline, drain. */
import { afterEach, describe, expect, jest, mock, spyOn, test } from "bun:test";
import { create as createPlant, remove } from "../../test/storage/tested-storage.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { groupCharactersMax, groupPlantsMax } from "../domain/plants.ts";
import { GardenLocked, type Outcome, type Write } from "../domain/ports.ts";
import { lateAfterMs } from "../limits/overload.ts";
import { deadlineMs, GroupCommit, groupWritesMax, lockedMs } from "./group-commit.ts";

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

async function ticks(count = 6): Promise<void> {
  for (let index = 0; index < count; index++) {
    if (jest.isFakeTimers()) jest.advanceTimersByTime(0);
    await new Promise((resolve) => realImmediate(resolve));
  }
}

const overloaded = expect.stringContaining("cannot keep up");

function create() {
  /** The calls of `apply`, with the ids of their writes. Each ends when the test says so. */
  const commits: { ids: number[]; succeed(): void; fail(error: unknown): void }[] = [];
  const committed: number[] = [];
  const storage = {
    apply(writes: readonly Write[]) {
      const { promise, resolve, reject } = Promise.withResolvers<readonly Outcome[]>();
      const ids = writes.map(({ id }) => Number(id));
      const outcomes = ids.map(
        (id): Outcome => ({ kind: "created", id: BigInt(id), replayed: false }),
      );
      commits.push({
        ids: [...new Set(ids)],
        succeed: () => resolve(outcomes),
        fail: reject,
      });
      return promise;
    },
  };
  const group = new GroupCommit(storage, {
    onCommit: (outcomes) => committed.push(outcomes.length),
  });

  /**
   * Writes so often to the plant with this id, whose first digit is the garden. Resolves to the id
   * of the last outcome, or to the message of the error.
   */
  async function send(id: number, writes = 1, isContinued = false): Promise<unknown> {
    const write = remove(BigInt(id), String(id).charAt(0));
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
  return { group, committed, send, sendAll, end, begin, groups };
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

test("a group has a bound, and so have each garden's text, and its writes while others wait", async () => {
  const { group, send, sendAll, begin, end, groups } = create();
  await begin();
  const results = Promise.all([send(10, groupPlantsMax - 1), sendAll(11, 12, 20, 21)]);
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
  const name = "x".repeat(groupCharactersMax);
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
  const locked = new GardenLocked();
  const isLocked = expect.stringContaining("has locked this garden");

  test.each<[what: string, ends: (Error | undefined)[], results: unknown[], groups: number[][]]>([
    ["of the storage fails the whole group", [full], Array(4).fill("Full."), []],
    [
      "by one write fails only that one",
      [bad, ok, bad, ok, ok],
      [10, "bad", 30, 21],
      [[10], [20], [30], [21]],
    ],
    [
      "by a garden that another program has locked fails only that garden",
      [locked, ok, locked, ok],
      [10, isLocked, 30, isLocked],
      [[10], [20, 21], [30]],
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

  test("by a lock refuses the garden's writes for a second", async () => {
    const { send, end } = create();
    const first = send(10);
    await ticks();
    await end(locked);
    expect(await first).toEqual(isLocked);
    expect(await send(11)).toEqual(isLocked);
    passTime(lockedMs);
    const later = send(12);
    await ticks();
    await end(ok);
    expect(await later).toBe(12);
  });

  test("of a storage that can't be used ends what has waited for it too long, and nothing else", async () => {
    const { send, begin, end, groups } = create();
    await begin();
    const early = send(2);
    passTime(lateAfterMs + 10);
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
  const early = [send(10, groupPlantsMax), send(11), send(12, groupPlantsMax, true), send(20)];
  passTime(lateAfterMs + 10);
  const late = send(13);
  await end(ok, ok, ok, ok);
  expect(await Promise.all(early)).toEqual([10, overloaded, 12, 20]);
  expect(await late).toBe(13);
});

test("past the deadline, the outcome is unknown, and what waits after it was not tried", async () => {
  jest.useFakeTimers();
  const { group, send, begin, end, groups } = create();
  const stuck = send(8);
  await ticks(1);
  const after = send(2);
  jest.advanceTimersByTime(deadlineMs - 1);
  expect(group.isStuck).toBe(false);
  jest.advanceTimersByTime(1);
  expect(group.isStuck).toBe(true);
  expect(await stuck).toEqual(expect.stringContaining("outcome is unknown"));
  expect(await Promise.all([after, send(3)])).toEqual([overloaded, overloaded]);
  await begin();
  expect(groups()).toEqual([[8]]);
  await end(ok);
  expect(group.isStuck).toBe(false);
  const later = send(4);
  await ticks();
  await end(ok);
  expect(await later).toBe(4);
});
