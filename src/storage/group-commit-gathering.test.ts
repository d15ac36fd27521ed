/** Between two commits: whoever was just answered and asks again is in time for the next one. */
import { expect, test } from "bun:test";
import type { Outcome, Write } from "../domain/storage.ts";
import { GroupCommit, groupCommitDefaults } from "./group-commit.ts";

test("busy clients are in one group, not in two that take turns", async () => {
  const groups: number[] = [];
  const { promise: firstCommit, resolve: noteFirstCommit } = Promise.withResolvers<void>();
  const storage = {
    async apply(writes: readonly Write[]): Promise<Outcome[]> {
      groups.push(writes.length);
      noteFirstCommit();
      await Bun.sleep(5);
      return writes.map(() => ({ kind: "missing" }));
    },
  };
  const group = new GroupCommit(storage, { ...groupCommitDefaults, onCommit() {} });
  const ask = async () => {
    for (let count = 0; count < 5; count++) {
      await group.write({ kind: "delete", garden: "g", id: 1n });
      // As long as an answer is on its way, and the next request.
      for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate);
    }
  };
  const early = Array.from({ length: 8 }, ask);
  await firstCommit;
  await Promise.all([...early, ...Array.from({ length: 8 }, ask)]);
  expect(groups).toEqual([8, 16, 16, 16, 16, 8]);
});
