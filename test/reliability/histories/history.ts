/** What the clients of one garden called, the results, and when. */

export interface Plant {
  readonly id: bigint;
  readonly name: string;
  readonly tag: string;
}

export type Field = keyof Plant;
export type Content = Pick<Plant, "name" | "tag">;

/** What a plant was when its entity tag was read. */
export interface Seen extends Plant {
  readonly entityTag: string;
}

export interface Create {
  readonly kind: "create";
  /** Absent: the service assigns one. */
  readonly id?: bigint | undefined;
  /** No two creates share it, unless they also share a key, or a put repeats it. */
  readonly name: string;
  readonly tag: string;
  readonly key?: string | undefined;
}

export interface Put extends Plant {
  readonly kind: "put";
  readonly ifMatch?: Seen | undefined;
  /** `If-None-Match: *` */
  readonly isForNew?: boolean;
}

export interface Delete {
  readonly kind: "delete";
  readonly id: bigint;
  readonly ifMatch?: Seen | undefined;
}

export interface Get {
  readonly kind: "get";
  readonly id: bigint;
}

/** Asks `/me` how many plants there are. */
export interface Count {
  readonly kind: "count";
}

export interface List {
  readonly kind: "list";
  readonly after?: bigint | undefined;
  readonly limit?: number | undefined;
  readonly fields: readonly Field[];
  /** The first page of a walk along the links. */
  readonly isWalk?: boolean;
}

export type Write = Create | Put | Delete;
export type Call = Write | Get | Count | List;

export function isWrite(call: Call): call is Write {
  return call.kind === "create" || call.kind === "put" || call.kind === "delete";
}

export type Result =
  | { readonly kind: "created"; readonly id: bigint; readonly isReplayed: boolean }
  | { readonly kind: "replaced" }
  | { readonly kind: "deleted" }
  | { readonly kind: "found"; readonly plant: Content }
  | { readonly kind: "counted"; readonly plants: number }
  | {
      readonly kind: "listed";
      readonly plants: readonly Partial<Plant>[];
      /** Where the link to the next page leads. */
      readonly next?: Pick<List, "after" | "limit"> | undefined;
    }
  | { readonly kind: "refused"; readonly status: 404 | 409 | 412 | 422 };

export interface Operation {
  /** Which client on which instance, for the reader. */
  readonly who: string;
  readonly call: Call;
  /** Absent if unknown: no response came, or one that leaves it open. */
  readonly result: Result | undefined;
  readonly calledAtMs: number;
  /** When the response came; without one, until when it may still take effect. */
  readonly endedAtMs: number;
}

/** One line each, in the order of their calls, with times since the first. */
export function render(operations: readonly Operation[]): string {
  const inOrder = operations.toSorted((a, b) => a.calledAtMs - b.calledAtMs);
  const startMs = inOrder[0]?.calledAtMs ?? 0;
  const lines = inOrder.map(({ who, call, result, calledAtMs, endedAtMs }) => {
    const [from, to] = [calledAtMs, endedAtMs].map((at) => (at - startMs).toFixed(2).padStart(9));
    const outcome = result ? renderValues(result) : "unknown";
    return `${from} to ${to} ms  ${who.padEnd(12)} ${renderValues(call)} → ${outcome}`;
  });
  return lines.join("\n");
}

function renderValues(value: Call | Result): string {
  return JSON.stringify(value, (_, each) => (typeof each === "bigint" ? `${each}` : each));
}
