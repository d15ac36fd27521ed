/** Histories written by hand: good ones, and one for every anomaly that is known. */
import type { Call, Field, List, Operation, Plant, Result } from "./history.ts";

export const create = (name: string, id?: bigint, key?: string): Call => ({
  kind: "create",
  id,
  name,
  tag: "",
  key,
});
export const remove = (id: bigint): Call => ({ kind: "delete", id });
export const list = (query: Partial<List> = {}): Call => ({
  kind: "list",
  fields: ["id", "name"],
  ...query,
});

export const created = (id: bigint): Result => ({ kind: "created", id, isReplayed: false });
const again = (id: bigint): Result => ({ kind: "created", id, isReplayed: true });
export const gone: Result = { kind: "deleted" };
const refused = (status: 404 | 409 | 422): Result => ({ kind: "refused", status });
const unknown = undefined;
export const listed = (
  plants: Record<string, bigint>,
  next?: Pick<List, "after" | "limit">,
): Result => ({
  kind: "listed",
  plants: Object.entries(plants).map(([name, id]) => ({ id, name })),
  next,
});
const named = (...names: string[]): Result => ({
  kind: "listed",
  plants: names.map((name): Partial<Plant> => ({ name })),
});
const onlyNames: { fields: readonly Field[] } = { fields: ["name"] };

export type Row = readonly [fromMs: number, toMs: number, call: Call, result: Result | undefined];

export function operationsOf(rows: readonly Row[]): Operation[] {
  return rows.map(
    ([calledAtMs, endedAtMs, call, result], index): Operation => ({
      who: `client ${index}`,
      call,
      result,
      calledAtMs,
      endedAtMs,
    }),
  );
}

const forever = Number.POSITIVE_INFINITY;

export const good: Record<string, readonly Row[]> = {
  "nothing at all": [],
  "one after the other": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, create("b", 1n), refused(409)],
    [4, 5, list(), listed({ a: 1n })],
    [6, 7, remove(1n), gone],
    [8, 9, remove(1n), refused(404)],
    [10, 11, list(), listed({})],
  ],
  "a list that overlaps a create may show it or not": [
    [0, 10, create("a", 1n), created(1n)],
    [1, 3, list(), listed({})],
    [4, 6, list(), listed({ a: 1n })],
  ],
  "two creates of one id at once: either may win": [
    [0, 10, create("a", 1n), refused(409)],
    [1, 9, create("b", 1n), created(1n)],
    [11, 12, list(), listed({ b: 1n })],
  ],
  "an unanswered create that happens much later": [
    [0, forever, create("a", 1n), unknown],
    [5, 6, list(), listed({})],
    [50, 51, list(), listed({ a: 1n })],
  ],
  "an unanswered create that never happens": [
    [0, forever, create("a", 1n), unknown],
    [5, 6, create("b", 1n), created(1n)],
  ],
  "an unanswered create that happened before its service ended, as a later list shows": [
    [0, 10, create("a"), unknown],
    [20, 21, list(), listed({ a: 1n })],
  ],
  "an unanswered delete that explains a gap": [
    [0, 1, create("a", 1n), created(1n)],
    [2, forever, remove(1n), unknown],
    [5, 6, create("b", 1n), created(1n)],
  ],
  "an unanswered create whose id only a deletion shows": [
    [0, forever, create("a"), unknown],
    [5, 6, remove(1n), gone],
    [7, 8, create("b"), created(2n)],
  ],
  "assigned ids behind chosen ones, and none comes again": [
    [0, 1, create("a", 5n), created(5n)],
    [2, 3, create("b"), created(6n)],
    [4, 5, remove(6n), gone],
    [6, 7, create("c"), created(7n)],
    [8, 9, create("d", -4n), created(-4n)],
    [10, 11, list(onlyNames), named("d", "a", "c")],
  ],
  "an assigned id that steps over one that was in its way": [
    [0, 1, create("a", 2n ** 52n), created(2n ** 52n)],
    [2, 3, create("b", 2n ** 52n + 1n), created(2n ** 52n + 1n)],
    [4, 5, create("c"), created(2n ** 52n + 2n)],
  ],
  "an assigned id that steps over one whose plant goes at that moment": [
    [0, 1, create("a", 2n ** 52n), created(2n ** 52n)],
    [2, 3, create("b", 2n ** 52n + 1n), created(2n ** 52n + 1n)],
    [4, 9, create("c"), created(2n ** 52n + 2n)],
    [5, 6, remove(2n ** 52n + 1n), gone],
    [7, 8, list(onlyNames), named("a")],
  ],
  "a key that is sent again, also after the plant is gone": [
    [0, forever, create("a", undefined, "k"), unknown],
    [5, 6, create("a", undefined, "k"), again(1n)],
    [7, 8, remove(1n), gone],
    [9, 10, create("a", undefined, "k"), again(1n)],
    [11, 12, create("b", undefined, "k"), refused(422)],
    [13, 14, list(), listed({})],
  ],
  "a key of a refused create is free": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, create("b", 1n, "k"), refused(409)],
    [4, 5, remove(1n), gone],
    [6, 7, create("c", 1n, "k"), created(1n)],
  ],
  "a walk beside changes": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, create("c", 3n), created(3n)],
    [4, 5, list({ limit: 1, walk: 1 }), listed({ a: 1n }, { limit: 1, after: 1n })],
    [6, 7, remove(1n), gone],
    [8, 9, create("b", 2n), created(2n)],
    [10, 11, list({ limit: 1, after: 1n, walk: 1 }), listed({ b: 2n }, { limit: 1, after: 2n })],
    [12, 13, list({ limit: 1, after: 2n, walk: 1 }), listed({ c: 3n })],
  ],
  "a page of none that leads on": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, list({ limit: 0 }), listed({}, { limit: 1 })],
  ],
};

export const bad: Record<string, readonly Row[]> = {
  "a stale list: a plant that was answered is missing": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, list(), listed({})],
  ],
  "a stale list: a plant that is gone is still there": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, remove(1n), gone],
    [4, 5, list(), listed({ a: 1n })],
  ],
  "a stale list after a fresh one": [
    [0, 100, create("a", 1n), created(1n)],
    [2, 3, list(), listed({ a: 1n })],
    [4, 5, list(), listed({})],
  ],
  "a lost create": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, create("b", 1n), created(1n)],
  ],
  "a lost delete: two found the same plant": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 9, remove(1n), gone],
    [3, 8, remove(1n), gone],
  ],
  "a plant that comes back": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, remove(1n), gone],
    [4, 5, list(), listed({})],
    [6, 7, list(), listed({ a: 1n })],
  ],
  "a plant of a killed service that only appears after the next one looked": [
    [0, 10, create("a", 1n), unknown],
    [20, 21, list(), listed({})],
    [22, 23, list(), listed({ a: 1n })],
  ],
  "an unanswered create that comes and goes": [
    [0, forever, create("a", 1n), unknown],
    [5, 6, list(), listed({ a: 1n })],
    [7, 8, list(), listed({})],
  ],
  "a conflict with nothing": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, remove(1n), gone],
    [4, 5, create("b", 1n), refused(409)],
  ],
  "a deletion of what was never there": [[0, 1, remove(1n), gone]],
  "nothing to delete where there is a plant": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, remove(1n), refused(404)],
  ],
  "two plants by one key": [
    [0, 1, create("a", undefined, "k"), created(1n)],
    [2, 3, create("a", undefined, "k"), created(2n)],
  ],
  "two plants by one key, of which only a list tells": [
    [0, forever, create("a", undefined, "k"), unknown],
    [5, 6, create("a", undefined, "k"), created(1n)],
    [7, 8, list(onlyNames), named("a", "a")],
  ],
  "another answer under the same key": [
    [0, 1, create("a", undefined, "k"), created(1n)],
    [2, 3, create("a", undefined, "k"), again(2n)],
  ],
  "another request under the same key": [
    [0, 1, create("a", undefined, "k"), created(1n)],
    [2, 3, create("b", undefined, "k"), created(2n)],
  ],
  "a mismatch with a key that nobody used": [[0, 1, create("a", 1n, "k"), refused(422)]],
  "a key that was kept without its plant": [
    [0, forever, create("a", 1n, "k"), unknown],
    [2, 3, create("a", 1n, "k"), again(1n)],
    [4, 5, list(), listed({})],
  ],
  "an id that is assigned twice": [
    [0, 1, create("a"), created(1n)],
    [2, 3, remove(1n), gone],
    [4, 5, create("b"), created(1n)],
  ],
  "a later plant with a lower id": [
    [0, 1, create("a"), created(2n)],
    [2, 3, create("b"), created(1n)],
  ],
  "an assigned id that steps over one that nobody ever had": [
    [0, 1, create("a", 2n ** 52n), created(2n ** 52n)],
    [2, 3, create("b"), created(2n ** 52n + 2n)],
  ],
  "an assigned id of 0": [[0, 1, create("a"), created(0n)]],
  "a plant that nobody sent": [[0, 1, list(), listed({ a: 1n })]],
  "a plant that is sent only later": [
    [0, 1, list(), listed({ a: 1n })],
    [2, 3, create("a", 1n), created(1n)],
  ],
  "a plant of a refused create": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, create("b", 1n), refused(409)],
    [4, 5, list(), listed({ b: 1n })],
  ],
  "a torn page: two moments in one list": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 20, list(), listed({ a: 1n, b: 2n })],
    [3, 4, remove(1n), gone],
    [5, 6, create("b", 2n), created(2n)],
  ],
  "two lists that saw two creates in different orders": [
    [0, 100, create("a", 1n), created(1n)],
    [0, 100, create("b", 2n), created(2n)],
    [10, 50, list(), listed({ a: 1n })],
    [10, 50, list(), listed({ b: 2n })],
  ],
  "a list out of order": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, create("b", 2n), created(2n)],
    [4, 5, list(), listed({ b: 2n, a: 1n })],
  ],
  "a list that ends early, without a link": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, create("b", 2n), created(2n)],
    [4, 5, list({ limit: 1 }), listed({ a: 1n })],
  ],
  "a link behind the last plant": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, list({ limit: 1 }), listed({ a: 1n }, { limit: 1, after: 1n })],
  ],
  "a link that leaves a plant out": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, create("b", 2n), created(2n)],
    [4, 5, list({ limit: 1, walk: 1 }), listed({ a: 1n }, { limit: 1, after: 2n })],
    [6, 7, list({ limit: 1, after: 2n, walk: 1 }), listed({})],
  ],
  "a walk that comes by a plant twice": [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, list({ limit: 1, walk: 1 }), listed({ a: 1n }, { limit: 1, after: 0n })],
    [4, 5, list({ limit: 1, after: 0n, walk: 1 }), listed({ a: 1n })],
  ],
};
