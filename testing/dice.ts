/** Random numbers that are the same in every run, for tests that try many cases. */

/** Numbers from 0 on, below `sides`. */
export function makeDice(seed: number): (sides: number) => number {
  let state = seed;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

/** Neighboring seeds give much the same numbers; spread out, they don't. */
export function spread(seed: number): number {
  return Math.imul(seed, 2_654_435_761) >>> 0;
}
