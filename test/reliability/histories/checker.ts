/** Tells what is wrong with a history, in words that a person can follow. */

import { explain } from "./anomaly.ts";
import { findBreaches } from "./answer-rules.ts";
import type { History } from "./history.ts";
import { isLinearizable, Undecided } from "./linearization.ts";

/** Every fault; empty when the answers are those of a service that works. */
export function check(history: History): string[] {
  const breaches = [...new Set(findBreaches(history))].map(
    (breach) => `in garden ${history.garden}, ${breach}`,
  );
  try {
    if (isLinearizable(history.operations)) return breaches;
    return [...breaches, explain(history)];
  } catch (error) {
    if (error instanceof Undecided) return [...breaches, `undecided: ${history.garden}`];
    throw error;
  }
}
