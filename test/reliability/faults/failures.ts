/** In which ways a call can fail, and which calls can fail so. */
import type { Failing } from "../interposed-io/interposed-io.ts";

export interface Failure {
  readonly name: string;
  readonly kinds: Failing["kinds"];
  /** What to do to the n-th of the calls, or to it and all that follow. */
  rules(nth: number, isLasting: boolean): readonly Failing[];
}

const anyCall: Failing["kinds"] = [
  "open",
  "close",
  "read",
  "write",
  "truncate",
  "sync",
  "unlink",
  "rename",
  "make folder",
  "map",
];

export const failures: readonly Failure[] = [
  failing("EIO", anyCall),
  failing("ENOSPC", ["open", "write", "truncate", "sync", "make folder"]),
  failing("EMFILE", ["open"]),
  {
    name: "half written, then ENOSPC",
    kinds: ["write"],
    rules: (nth, isLasting) => [
      { kinds: ["write"], error: "short", first: nth, last: nth },
      { kinds: ["write"], error: "ENOSPC", first: nth + 1, ...(!isLasting && { last: nth + 1 }) },
    ],
  },
];

export function failing(error: Failing["error"], kinds: Failing["kinds"]): Failure {
  return {
    name: error,
    kinds,
    rules: (nth, isLasting) => [{ kinds, error, first: nth, ...(!isLasting && { last: nth }) }],
  };
}
