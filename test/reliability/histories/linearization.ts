/**
 * Whether overlapping operations can be put into one order in which every result is right, each at
 * a moment between its call and its response. This is Wing and Gong's search, with memoization.
 */
import { Garden } from "./garden-model.ts";
import { isWrite, type Operation, render } from "./history.ts";

/** Far more than a correct history needs. */
const placesMax = 300_000;

/** Empty if the history is linearizable. Otherwise all up to the result that nothing explains. */
export function check(operations: readonly Operation[]): string[] {
  if (isLinearizable(operations)) return [];
  const ends = operations.filter(({ result }) => result).map(({ endedAtMs }) => endedAtMs);
  const parts = ends.toSorted((a, b) => a - b).map((endMs) => until(operations, endMs));
  const part = parts.find((each) => !isLinearizable(each)) ?? operations;
  return [`no order explains these results:\n${render(part)}`];
}

/** What was known at that moment. */
function until(operations: readonly Operation[], momentMs: number): Operation[] {
  return operations
    .filter(({ calledAtMs }) => calledAtMs <= momentMs)
    .map((operation) =>
      operation.endedAtMs <= momentMs
        ? operation
        : { ...operation, result: undefined, endedAtMs: Number.POSITIVE_INFINITY },
    )
    .filter(({ call, result }) => result || isWrite(call));
}

function isLinearizable(operations: readonly Operation[]): boolean {
  return new Search(operations).reachesEnd(Garden.empty);
}

interface Step extends Operation {
  /** It has its place in the order. */
  isDone: boolean;
}

class Search {
  /** By the time of their calls. */
  readonly #steps: readonly Step[];
  /** States that lead nowhere. */
  readonly #tried = new Set<string>();
  /** All steps before this index are done; restored when the search goes back. */
  #from = 0;

  constructor(operations: readonly Operation[]) {
    this.#steps = operations
      .toSorted((one, other) => one.calledAtMs - other.calledAtMs)
      .map((operation) => ({ ...operation, isDone: false }));
  }

  /** Whether all operations with a result can be done from here on. Others need not be. */
  reachesEnd(garden: Garden): boolean {
    const from = this.#from;
    const settled = this.#settle(garden);
    if (this.#isComplete() || this.#goesOn(garden)) return true;
    for (const step of settled) step.isDone = false;
    this.#from = from;
    return false;
  }

  #goesOn(garden: Garden): boolean {
    const place = this.#describe(garden);
    if (this.#tried.has(place)) return false;
    this.#tried.add(place);
    if (this.#tried.size > placesMax) throw new Error("There are too many orders to try.");
    for (const step of this.#next()) {
      const after = garden.after(step);
      if (after === undefined || (after === garden && step.result === undefined)) continue;
      step.isDone = true;
      if (this.reachesEnd(after)) return true;
      step.isDone = false;
    }
    return false;
  }

  /**
   * Does every possible next step that changes nothing: no other order needs to be tried for it.
   * Exceptions are a put, which may change something later with the same result, and a step that
   * would make it too late for one with an unknown result.
   */
  #settle(garden: Garden): Step[] {
    const settled: Step[] = [];
    for (let before = -1; settled.length > before; ) {
      before = settled.length;
      const next = this.#next();
      const unanswered = next.filter(({ result }) => result === undefined);
      const dueMs = Math.min(...unanswered.map(({ endedAtMs }) => endedAtMs));
      for (const step of next) {
        if (step.result === undefined || step.calledAtMs > dueMs) continue;
        if (step.result.kind === "replaced") continue;
        if (garden.after(step) !== garden) continue;
        step.isDone = true;
        settled.push(step);
      }
    }
    return settled;
  }

  /**
   * What may come next: steps that were called before any remaining one had its response. Those
   * with the earliest response come first.
   */
  #next(): Step[] {
    while (this.#steps[this.#from]?.isDone) this.#from++;
    const found: Step[] = [];
    let firstEndMs = Number.POSITIVE_INFINITY;
    let lastCallMs = this.#steps[this.#from - 1]?.calledAtMs ?? Number.NEGATIVE_INFINITY;
    for (let index = this.#from; index < this.#steps.length; index++) {
      const step = this.#steps[index] as Step;
      if (step.calledAtMs > firstEndMs) break;
      if (step.isDone) lastCallMs = step.calledAtMs;
      else found.push(step);
      if (!step.isDone && step.result) firstEndMs = Math.min(firstEndMs, step.endedAtMs);
    }
    return found
      .filter((step) => step.calledAtMs <= firstEndMs && lastCallMs <= step.endedAtMs)
      .toSorted((one, other) => rank(one) - rank(other));
  }

  #isComplete(): boolean {
    return this.#steps.every(({ result, isDone }) => isDone || result === undefined);
  }

  #describe(garden: Garden): string {
    const done = this.#steps.slice(this.#from).map(({ isDone }) => (isDone ? "1" : "0"));
    return `${this.#from} ${done.join("").replace(/0+$/, "")}\n${garden.fingerprint}`;
  }
}

function rank({ result, endedAtMs }: Step): number {
  return result ? endedAtMs : Number.MAX_VALUE;
}
