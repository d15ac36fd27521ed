/**
 * Gardens of skewed sizes and skewed traffic. Only their counts exist, never the plants, so that
 * ten billion of them fit into memory.
 */
import { createRandom, drawNormal, mix } from "./random.ts";

export interface GardensOptions {
  readonly seed: number;
  readonly gardens: number;
  readonly plants: number;
  /**
   * Zipf's: the k-th busiest garden gets 1 / k^exponent; 0 is even, 1 is the usual skew of the web.
   */
  readonly trafficExponent: number;
}

export interface Gardens {
  readonly count: number;
  /** How many plants each holds. */
  readonly plants: Float64Array;
  /** Which share of all requests each gets; together 1. */
  readonly traffic: Float64Array;
  /** The 32 bits that decide where each lies. */
  readonly hashes: Uint32Array;
}

/**
 * With 2, half of the gardens hold less than an eighth of the mean, and one in a million 2,000
 * times it.
 */
const sizeDeviation = 2;
/** Big gardens tend to be the busy ones, though not strictly. */
const trafficDeviation = 1;

export function makeGardens(options: GardensOptions): Gardens {
  const { seed, gardens: count } = options;
  const random = createRandom(seed);
  const sizes = Float64Array.from({ length: count }, () =>
    Math.exp(sizeDeviation * drawNormal(random)),
  );
  const activity = sizes.map((size) => size * Math.exp(trafficDeviation * drawNormal(random)));
  const traffic = new Float64Array(count);
  Uint32Array.from({ length: count }, (_, garden) => garden)
    .sort((left, right) => (activity[right] ?? 0) - (activity[left] ?? 0))
    .forEach((garden, rank) => {
      traffic[garden] = (rank + 1) ** -options.trafficExponent;
    });
  const salt = mix(seed);
  return {
    count,
    plants: scaleTo(options.plants, sizes).map(Math.round),
    traffic: scaleTo(1, traffic),
    hashes: Uint32Array.from({ length: count }, (_, garden) => mix(garden ^ salt)),
  };
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let index = 0; index < values.length; index++) total += values[index] ?? 0;
  return total;
}

export function largest(values: ArrayLike<number>): number {
  let found = 0;
  for (let index = 0; index < values.length; index++) found = Math.max(found, values[index] ?? 0);
  return found;
}

function scaleTo(total: number, values: Float64Array): Float64Array {
  const factor = total / sum(values);
  return values.map((value) => value * factor);
}
