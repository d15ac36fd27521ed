/** The checker itself: good histories pass, and every known anomaly is found. */
import { describe, expect, test } from "bun:test";
import { check } from "./checker.ts";
import { isLinearizable } from "./linearization.ts";
import {
  bad,
  create,
  created,
  gone,
  good,
  list,
  listed,
  operationsOf,
  type Row,
  remove,
} from "./written-histories.ts";

function faultsOf(rows: readonly Row[]): string[] {
  return check({ garden: "g", operations: operationsOf(rows) });
}

describe("a history passes with", () => {
  test.each(Object.entries(good))("%s", (_name, rows) => {
    expect(faultsOf(rows)).toEqual([]);
  });
});

describe("a history is found out with", () => {
  test.each(Object.entries(bad))("%s", (_name, rows) => {
    expect(isLinearizable(operationsOf(rows))).toBe(false);
    expect(faultsOf(rows)).not.toEqual([]);
  });
});

test.each([
  ["two plants by one key", 'the key k stands for 1 "a" and 2 "a"'],
  ["an id that is assigned twice", '"b" and "a" were both assigned the id 1'],
  ["a later plant with a lower id", '"b" came later than "a", with a lower id: 1 after 2'],
  ["a plant that nobody sent", 'a list shows 1 "a", which nobody had sent'],
  ["a list out of order", "a list is not in the order of ids: 2,1"],
  ["a link that leaves a plant out", 'a walk never came by "b"'],
  ["a walk that comes by a plant twice", 'a walk came by "a" twice'],
])("%s is also told in a sentence", (name, sentence) => {
  expect(faultsOf(bad[name] ?? [])).toContain(`in garden g, ${sentence}`);
});

test("what is wrong is shown alone, with its times", () => {
  const rows: Row[] = [
    [0, 1, create("a", 1n), created(1n)],
    [2, 3, create("b", 2n), created(2n)],
    [4, 5, list(), listed({ a: 1n, b: 2n })],
    [6, 7, remove(2n), gone],
    [8, 9, list(), listed({ a: 1n, b: 2n })],
    [10, 11, remove(1n), gone],
  ];
  expect(faultsOf(rows)).toEqual([
    [
      "in garden g, plant 2: no order explains these answers:",
      '     0.00 to      1.00 ms  client 1     create 2 "b" → 2',
      "     4.00 to      5.00 ms  client 3     delete 2 → gone",
      "     6.00 to      7.00 ms  client 4     list → [2 b]",
    ].join("\n"),
  ]);
});
