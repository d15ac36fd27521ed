/** In which order the table shows plants. The service orders them by id; the page can do more. */
import type { Plant, Query } from "./api.ts";

export type Column = "name" | "tag" | "id";

export interface Order {
  readonly by: Column;
  readonly isDown: boolean;
}

/** What the page is asked for: a list of the service, and what to sort it by. */
export interface SortedQuery extends Query {
  readonly sort?: Column | undefined;
}

/** More plants than this are shown by id. */
export const sortedMax = 10_000;

const collator = new Intl.Collator(undefined, { numeric: true });

/** `bed 2` before `bed 11`, and `a` before `B`. */
export const compareTexts: (a: string, b: string) => number = collator.compare;

/** By name, unless the query says otherwise. */
export function toOrder({ sort, order }: SortedQuery): Order {
  const isDown = order === "desc";
  return { by: sort ?? (isDown ? "id" : "name"), isDown };
}

/** What to ask the service for. */
export function toRequest(query: SortedQuery): Query {
  const { tag, q, order } = query;
  return { tag, q, order: toOrder(query).by === "id" ? order : undefined };
}

export function isSameQuery(a: SortedQuery, b: SortedQuery): boolean {
  return a.tag === b.tag && a.q === b.q && a.order === b.order && a.sort === b.sort;
}

/** Compares plants as an order has them. Plants without a tag come last. */
export function makeCompare({ by, isDown }: Order): (a: Plant, b: Plant) => number {
  const sign = isDown ? -1 : 1;
  const compareIds = (a: Plant, b: Plant) => (a.id < b.id ? -1 : 1);
  if (by === "id") return (a, b) => sign * compareIds(a, b);
  const compareNames = (a: Plant, b: Plant) => compareTexts(a.name, b.name) || compareIds(a, b);
  if (by === "name") return (a, b) => sign * compareNames(a, b);
  return (a, b) =>
    Number(a.tag === "") - Number(b.tag === "") ||
    sign * compareTexts(a.tag, b.tag) ||
    compareNames(a, b);
}
