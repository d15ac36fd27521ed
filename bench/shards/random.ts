/** Random numbers from a seed: the same seed gives the same numbers. Knows nothing of gardens. */

/** Gives the next number, at least 0 and below 1. */
export type Random = () => number;

/** Weyl steps, mixed: short, fast and even enough for counting. Not for secrets. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    return mix(state) / 2 ** 32;
  };
}

/** Spreads whole numbers over 32 bits so that neighbours land far apart. */
export function mix(value: number): number {
  let mixed = value >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** From the bell curve around 0 with a deviation of 1. */
export function drawNormal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
