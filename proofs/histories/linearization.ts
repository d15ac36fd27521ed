/**
 * Whether overlapping operations can be put into one order in which every response is right, each
 * at a moment between its call and its response. This is Wing and Gong's search, with memoization.
 * The events are what the last operation read: the order of the writes must be theirs.
 */
import { type Call, Garden } from "../../testing/garden-model.ts";

export interface Operation {
  /** Which client on which instance, for the reader. */
  readonly who: string;
  readonly user: string;
  readonly call: Call;
  /** As the model has it. Absent if it is unknown whether the call took effect. */
  readonly response: string | undefined;
  readonly calledAtMs: number;
  /** When the response came; without one, until when the call may still take effect. */
  readonly endedAtMs: number;
}

/** Far more than a correct history needs. */
const placesMax = 300_000;

/** Empty if the history is linearizable. Otherwise all up to the response that nothing explains. */
export function check(operations: readonly Operation[]): string[] {
  const inOrder = operations.toSorted((one, other) => one.calledAtMs - other.calledAtMs);
  const log = inOrder.findLast(({ call }) => call.kind === "events")?.response;
  const search = new Search(log?.slice("200 ".length).split("\n") ?? []);
  if (search.explains(Garden.limitedTo(Infinity), inOrder)) return [];
  const known = inOrder.filter(({ calledAtMs }) => calledAtMs <= search.furthestMs);
  return [`no order explains these responses:\n${render(known)}`];
}

class Search {
  /** The latest response that an order has yet come to. */
  furthestMs = 0;
  /** From where no order leads on. */
  readonly #tried = new Set<string>();

  constructor(private readonly log: readonly string[]) {}

  /** Whether everything with a response can happen from here on. Other calls need not. */
  explains(garden: Garden, pending: readonly Operation[]): boolean {
    if (pending.every(({ response }) => response === undefined)) return true;
    const place = `${pending.map(({ calledAtMs }) => calledAtMs)}\n${garden.fingerprint}`;
    if (this.#tried.has(place)) return false;
    this.#tried.add(place);
    if (this.#tried.size > placesMax) throw new Error("There are too many orders to try.");
    this.furthestMs = Math.max(this.furthestMs, firstEndOf(pending));
    return nextOf(pending).some((operation) => {
      const { garden: after, response } = garden.take(operation.call, operation.user);
      const isUnknown = operation.response === undefined;
      const isPossible = isUnknown ? after !== garden : operation.response === response;
      const isNext = isPossible && this.#isLogged(after);
      return isNext && this.explains(after, without(pending, operation));
    });
  }

  /** Only what had no response may happen after the log was read. */
  #isLogged({ events }: Garden): boolean {
    const logged = this.log[events.length - 1] ?? "";
    return events.length === 0 || logged === "" || logged === events.at(-1);
  }
}

/** What was called before the first remaining response, the earliest response first. */
function nextOf(pending: readonly Operation[]): Operation[] {
  const firstEndMs = firstEndOf(pending);
  const rank = ({ response, endedAtMs }: Operation) => (response ? endedAtMs : Number.MAX_VALUE);
  return pending
    .filter(({ calledAtMs }) => calledAtMs <= firstEndMs)
    .toSorted((one, other) => rank(one) - rank(other));
}

function firstEndOf(pending: readonly Operation[]): number {
  const ends = pending.map(({ response, endedAtMs }) => (response ? endedAtMs : Infinity));
  return Math.min(...ends);
}

/** After it, what ended before its call can no longer take effect. */
function without(pending: readonly Operation[], operation: Operation): Operation[] {
  return pending.filter((each) => each !== operation && each.endedAtMs >= operation.calledAtMs);
}

/** One line each, with times since the first. */
function render(operations: readonly Operation[]): string {
  const startMs = operations[0]?.calledAtMs ?? 0;
  const lines = operations.map(({ who, call, response = "unknown", calledAtMs, endedAtMs }) => {
    const [from, to] = [calledAtMs, endedAtMs].map((at) => (at - startMs).toFixed(2).padStart(9));
    const values = Bun.inspect(call, { compact: true });
    return `${from} to ${to} ms  ${who.padEnd(12)} ${values} → ${response}`;
  });
  return lines.join("\n");
}
