/** Random calls of a client. Ids and keys are few, so that clients conflict. */

import type { Call, Content, List, Seen } from "../../testing/garden-model.ts";
import type { Dice, Notebook } from "./client.ts";

export const callsMin = 10;
const callsMax = 25;
const ids = [1n, 2n, 3n, 4n];
const keysCount = 3;
/** Few, so that cached responses are used. */
const usualLists: readonly List[] = [
  { kind: "list", include: "id" },
  { kind: "list", include: "id" },
  { kind: "list", include: "id", limit: 50 },
  { kind: "list" },
];

/** The calls of one client. `reads` is how many of ten calls are reads. */
export function* plan(
  number: number,
  dice: Dice,
  reads: number,
  { seen }: Notebook,
): Generator<Call> {
  const pick = <Item>(items: readonly Item[]) => items[dice(items.length)] as Item;
  const pickSeenId = () => pick(seen)?.id ?? pick(ids);
  /** The latest entity tag of that plant, or any. */
  const pickSeen = (id: bigint): { ifMatch?: Seen } => {
    const latest = dice(6) > 0 ? seen.findLast((each) => each.id === id) : undefined;
    const ifMatch = latest ?? pick(seen);
    return ifMatch ? { ifMatch } : {};
  };
  const pickRead = (): Call => {
    const after = dice(3) === 0 ? { after: pickSeenId() } : {};
    return pick<() => Call>([
      () => pick(usualLists),
      () => pick(usualLists),
      () => ({ kind: "list", include: "id", limit: 1 + dice(3), ...after }),
      () => ({ kind: "events", after: dice(6) }),
      () => ({ kind: "get", id: pickSeenId() }),
      () => ({ kind: "count", of: dice(2) ? "plants" : "lastEvent" }),
    ])();
  };
  /** A key mostly comes with the same request, whichever client sends it. */
  const pickKeyed = (): Call => {
    const key = dice(keysCount);
    const id = key === 0 ? { id: 1n } : {};
    const name = dice(6) === 0 ? `key ${key}, other` : `key ${key}`;
    return { kind: "create", name, tag: "", ...id, key: `key-${key}` };
  };

  const count = callsMin + dice(callsMax - callsMin + 1);
  for (let index = 0; index < count; index++) {
    if (dice(10) < reads) {
      yield pickRead();
      continue;
    }
    const id = dice(2) === 0 ? pick(ids) : pickSeenId();
    const fresh: Content = { name: `${number}.${index}`, tag: dice(2) === 0 ? "" : "shady" };
    // Now and then what a plant was before.
    const { name, tag } = (dice(5) === 0 && pick(seen)) || fresh;
    yield pick<Call>([
      { kind: "delete", id },
      { kind: "delete", id, ...pickSeen(id) },
      pickKeyed(),
      { kind: "put", name, tag, id },
      { kind: "put", ...fresh, id, ifNoneMatch: "*" },
      { kind: "put", name, tag, id, ifMatch: "*" },
      // As clients change a plant: what somebody else puts in between must not be lost.
      { kind: "put", name, tag, id, ...pickSeen(id) },
      { kind: "put", name, tag, id, ...pickSeen(id) },
      { kind: "patch", name, id },
      { kind: "patch", tag, id, ...pickSeen(id) },
      { kind: "create", ...fresh },
      { kind: "create", ...fresh, id: pick(ids) },
    ]);
  }
}
