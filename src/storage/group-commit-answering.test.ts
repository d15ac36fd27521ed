/** What comes behind a commit: its answers, a few at a time, and the end of its deadline. */
import { afterEach, expect, jest, test } from "bun:test";
import { overloaded } from "../domain/errors.ts";
import type { Outcome, Write } from "../domain/storage.ts";
import { GroupCommit, type GroupCommitOptions, groupCommitDefaults } from "./group-commit.ts";

const realImmediate = setImmediate;

afterEach(() => {
  jest.useRealTimers();
});

/** A storage whose commits end when the test says so, and what each write came to. */
function create(options: Partial<GroupCommitOptions> = {}) {
  const ends: (() => void)[] = [];
  const storage = {
    apply(writes: readonly Write[]) {
      const { promise, resolve } = Promise.withResolvers<readonly Outcome[]>();
      const toOutcome = ({ id = 0n }: Write): Outcome => ({ kind: "created", id, replayed: false });
      ends.push(() => resolve(writes.map(toOutcome)));
      return promise;
    },
  };
  const group = new GroupCommit(storage, { ...groupCommitDefaults, onCommit() {}, ...options });
  const answers: unknown[] = [];
  const writeMany = (from: number, to: number) => {
    for (let id = from; id < to; id++) {
      group.write({ kind: "delete", garden: "g", id: BigInt(id) }).then(
        (outcome) => answers.push("id" in outcome ? Number(outcome.id) : outcome.kind),
        (error) => answers.push(error),
      );
    }
  };
  return { group, ends, answers, writeMany };
}

async function turn(): Promise<void> {
  if (jest.isFakeTimers()) jest.advanceTimersByTime(0);
  await new Promise((resolve) => realImmediate(resolve));
}

async function turns(count: number): Promise<void> {
  for (let index = 0; index < count; index++) await turn();
}

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);

test("a large group is answered whole and in order, but not in one turn of the event loop", async () => {
  const { ends, answers, writeMany } = create();
  writeMany(0, 300);
  await turn();
  ends[0]?.();
  const seen: number[] = [];
  while (answers.length < 300 && seen.length < 10) {
    await turn();
    seen.push(answers.length);
  }
  expect(seen[0]).toBeLessThan(100);
  expect(seen.length).toBeLessThan(10);
  expect(answers).toEqual(upTo(300));
});

test("drain waits until a large group is answered to its end, whenever it is asked", async () => {
  const { group, ends, answers, writeMany } = create({ groupWritesMax: 10_000 });
  writeMany(0, 10_000);
  await turn();
  ends[0]?.();
  const answeredBefore: number[] = [];
  for (let asked = 0; asked < 15; asked++) {
    group.drain().then(() => answeredBefore.push(answers.length));
    await turn();
  }
  expect(answeredBefore).toEqual(Array.from({ length: 15 }, () => 10_000));
});

test("that a group is answered to its end does not end a drain while the next commit runs", async () => {
  const { group, ends, answers, writeMany } = create({ groupWritesMax: 1_000 });
  writeMany(0, 1_001);
  await turn();
  let isDrained = false;
  group.drain().then(() => {
    isDrained = true;
  });
  ends[0]?.();
  await turns(15);
  expect([answers.length, ends.length, isDrained]).toEqual([1_000, 2, false]);
  ends[1]?.();
  await turns(15);
  expect([answers.length, isDrained]).toEqual([1_001, true]);
});

test("a commit that came back in time is not given up later", async () => {
  jest.useFakeTimers();
  const { group, ends, writeMany } = create({ deadlineMs: 1_000 });
  writeMany(0, 1);
  await turns(2);
  ends[0]?.();
  await turns(2);
  jest.advanceTimersByTime(2_000);
  expect(group.isStuck).toBe(false);
});

test("a key settles what was under way at the deadline; what waited behind was not tried", async () => {
  const { answers, writeMany } = create({ deadlineMs: 1 });
  writeMany(0, 1);
  await turns(2);
  writeMany(1, 2);
  while (answers.length < 2) await Bun.sleep(1);
  expect(answers).toEqual([
    expect.objectContaining({ message: expect.stringContaining("outcome is unknown") }),
    overloaded,
  ]);
});
