/** Random calls of a client. Ids and keys are few, so that clients conflict. */
import type { Call, Create, Field, List, Put, Seen } from "./history.ts";

export type Dice = (sides: number) => number;

/** Shared by the clients of a garden. */
export interface Habits {
  /** How many of ten calls are reads. */
  readonly reads: number;
  /** The ids that clients choose from. */
  readonly ids: readonly bigint[];
}

export const callsMin = 10;
const callsMax = 25;

const counted = 2n ** 52n;
const idChoices: readonly (readonly bigint[])[] = [
  [1n, 2n, 3n, 4n],
  [1n, 2n, 3n, 4n],
  [-(2n ** 63n), -1n, 0n, 2n, 2n ** 53n + 1n, 2n ** 63n - 1n],
  // Around the limit up to which chosen ids raise the counter of assigned ones.
  [counted - 1n, counted, counted + 1n, counted + 2n, counted + 3n],
];

export function drawHabits(dice: Dice): Habits {
  return {
    reads: [2, 4, 8][dice(3)] ?? 4,
    ids: idChoices[dice(idChoices.length)] ?? [],
  };
}

const keysCount = 3;
const all: readonly Field[] = ["id", "name", "tag"];
/** Few, so that cached responses are used. */
const usualLists: readonly List[] = [
  { kind: "list", fields: all },
  { kind: "list", fields: all },
  { kind: "list", fields: all, limit: 50 },
  { kind: "list", fields: ["name", "tag"] },
  { kind: "list", fields: ["id"] },
];

/** The calls of one client. */
export function* plan(
  number: number,
  dice: Dice,
  { reads, ids }: Habits,
  /** Ids of plants that were created so far, and entity tags that were read. */
  { seenIds, seen }: { readonly seenIds: readonly bigint[]; readonly seen: readonly Seen[] },
): Generator<Call> {
  const count = callsMin + dice(callsMax - callsMin + 1);
  const pickId = () => ids[dice(ids.length)] as bigint;
  const pickSeenId = () => seenIds[dice(seenIds.length)] ?? pickId();
  for (let index = 0; index < count; index++) {
    const name = `${number}.${index}`;
    const tag = dice(2) === 0 ? "" : "shady";
    if (dice(10) < reads) {
      yield pickRead();
      continue;
    }
    const id = dice(2) === 0 ? pickId() : pickSeenId();
    switch (dice(10)) {
      case 0:
        yield { kind: "delete", id };
        break;
      case 1:
        yield { kind: "delete", id, ifMatch: pickSeen(id) };
        break;
      case 2:
        yield pickKeyed();
        break;
      case 3:
        yield { kind: "put", ...pickContent(name, tag), id };
        break;
      case 4:
        yield { kind: "put", name, tag, id, isForNew: true };
        break;
      case 5:
      case 6:
        // As clients change a plant: what somebody else puts in between must not be lost.
        yield { kind: "get", id };
        yield { kind: "put", ...pickContent(name, tag), id, ifMatch: pickSeen(id) };
        break;
      default:
        yield { kind: "create", name, tag, id: dice(2) === 0 ? pickId() : undefined };
    }
  }

  /** The latest tag of that plant, or any. */
  function pickSeen(id: bigint): Seen | undefined {
    const latest = dice(6) > 0 ? seen.findLast((each) => each.id === id) : undefined;
    return latest ?? seen[dice(seen.length)];
  }

  /** Mostly new; now and then what a plant was before. */
  function pickContent(name: string, tag: string): Pick<Put, "name" | "tag"> {
    const earlier = dice(5) === 0 ? seen[dice(seen.length)] : undefined;
    return earlier ? { name: earlier.name, tag: earlier.tag } : { name, tag };
  }

  function pickRead(): Call {
    if (dice(4) > 0) return pickList();
    return dice(3) === 0 ? { kind: "count" } : { kind: "get", id: pickSeenId() };
  }

  function pickList(): List {
    if (dice(4) > 0) return usualLists[dice(usualLists.length)] as List;
    const after = dice(3) === 0 ? pickSeenId() : undefined;
    return { kind: "list", fields: all, limit: dice(4), after, isWalk: true };
  }

  /** A key mostly comes with the same request, whichever client sends it. */
  function pickKeyed(): Create {
    const key = dice(keysCount);
    const id = key === 0 ? ids[0] : undefined;
    const name = dice(6) === 0 ? `key ${key}, other` : `key ${key}`;
    return { kind: "create", name, tag: "", id, key: `key-${key}` };
  }
}
