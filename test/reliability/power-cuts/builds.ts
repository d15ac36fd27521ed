/**
 * The program, changed: to write its log back often, or to break a promise that must be seen
 * broken.
 */
import type { Edit } from "../../changed-program.ts";

const full = 'database.run("PRAGMA synchronous = FULL");';

/** The same in all but this: the log is written back after a few pages instead of a thousand. */
export function checkpointOften(pages: number): Edit {
  return {
    file: "storage/sqlite/open.ts",
    text: full,
    by: `${full} database.run("PRAGMA wal_autocheckpoint = ${pages}");`,
  };
}

function sync(mode: string): Edit[] {
  const by = `database.run("PRAGMA synchronous = ${mode}");`;
  return [{ file: "storage/sqlite/open.ts", text: full, by }];
}

const answering = `for (const { end, writes } of groups) {
      const result = packOutcomes(outcomes.slice(from, from + writes.length));
      from += writes.length;
      end.postMessage({ result } satisfies Reply);
    }`;

/** Everybody is told while the transaction is still open. */
const answersEarly: Edit[] = [
  {
    file: "storage/sqlite/writer.ts",
    text: "counters.keep();\n        return outcomes;",
    by: `counters.keep();
        (globalThis as { answerEarly?: (outcomes: unknown) => void }).answerEarly?.(outcomes);
        return outcomes;`,
  },
  {
    file: "storage/sqlite/worker.ts",
    text: "outcomes = opened().apply(groups.flatMap((group) => group.writes));",
    by: `(globalThis as any).answerEarly = (outcomes: any) => {
      let from = 0;
      ${answering}
      Bun.sleepSync(5);
    };
    opened().apply(groups.flatMap((group) => group.writes));
    Atomics.add(commits, 0, 1);
    return;`,
  },
];

/** The key is stored in a transaction of its own, after that of the plant. */
const keepsKeysApart: Edit[] = [
  {
    file: "storage/sqlite/writer.ts",
    text: "if (key) keepKey.run(garden, key.hash, key.requestHash, outcome.id, key.expiresAtMs);",
    by: `const { id } = outcome;
    if (key) setTimeout(() => keepKey.run(garden, key.hash, key.requestHash, id, key.expiresAtMs), 1);`,
  },
];

const forgetsFolders: Edit[] = [
  { file: "storage/sqlite/open.ts", text: "syncFolderOf(made);", by: ";" },
];

export const brokenBuilds: Readonly<Record<string, readonly Edit[]>> = {
  "never syncs": sync("OFF"),
  "syncs only when it writes its log back": sync("NORMAL"),
  "does not sync the folders that it makes": forgetsFolders,
  "answers before the commit": answersEarly,
  "stores a key after its plant": keepsKeysApart,
};
