/**
 * How long refusals take, kind by kind, over a real socket, and whether a kind can be told from
 * another by it. It knows nothing of tokens.
 */
import { KeptConnection } from "../kept-connection.ts";

/** Hands out the request to send, the n-th time. */
export type Kind = (turn: number) => string;

export interface Comparison {
  readonly kind: string;
  readonly medianUs: number;
  /**
   * Of two times, one of this kind and one of the first, how often this one is the longer. A half:
   * to guess by the clock is to guess.
   */
  readonly longerShare: number;
  /**
   * How far that is from a half, in standard deviations (Mann and Whitney's test, which no outlier
   * sways).
   */
  readonly deviation: number;
}

/**
 * Beyond it there is a reason and no chance, as for dudect (Reparaz, Balasch, Verbauwhede, 2017).
 */
export const deviationMax = 4.5;

/**
 * One request of each kind a round, in an order that changes with the round, on one connection.
 * Fails if one is answered with another status.
 */
export async function compareTimes(
  port: number,
  kinds: Readonly<Record<string, Kind>>,
  status: number,
  rounds: number,
  dice: (sides: number) => number,
): Promise<Comparison[]> {
  const connection = await KeptConnection.open({ port, isSecure: false });
  const names = Object.keys(kinds);
  const timesUs = new Map<string, number[]>(names.map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    for (const name of shuffle(names, dice)) {
      const text = kinds[name]?.(round) ?? "";
      const startedAtMs = performance.now();
      const [answer] = await Promise.all(connection.send(text));
      timesUs.get(name)?.push((performance.now() - startedAtMs) * 1_000);
      if (answer?.status !== status)
        throw new Error(`${name} was answered with ${answer?.status}.`);
    }
  }
  connection.close();
  return judge(timesUs);
}

export function judge(timesUs: ReadonlyMap<string, readonly number[]>): Comparison[] {
  const [reference = []] = timesUs.values();
  return Array.from(timesUs, ([kind, times]) => {
    const medianUs = times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0;
    const longerShare = shareOfLonger(times, reference);
    const [n, m] = [times.length, reference.length];
    const deviation = (longerShare - 0.5) / Math.sqrt((n + m + 1) / (12 * n * m));
    return { kind, medianUs, longerShare, deviation };
  });
}

/** Of all pairs, those whose first time is the longer; equal ones count half. */
function shareOfLonger(first: readonly number[], second: readonly number[]): number {
  const others = second.toSorted((a, b) => a - b);
  let [below, upTo, pairs] = [0, 0, 0];
  for (const time of first.toSorted((a, b) => a - b)) {
    while (below < others.length && (others[below] as number) < time) below++;
    while (upTo < others.length && (others[upTo] as number) <= time) upTo++;
    pairs += (below + upTo) / 2;
  }
  return pairs / (first.length * second.length);
}

function shuffle<Item>(items: readonly Item[], dice: (sides: number) => number): Item[] {
  const left = [...items];
  return items.map(() => left.splice(dice(left.length), 1)[0] as Item);
}
