/** How often gardens are counted, and what is known of them in between. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { Quota } from "./quota.ts";

const plantsMax = 8;

function makeGarden(plants: number): { quota: Quota; database: Database } {
  const database = new Database(":memory:", { strict: true, safeIntegers: true });
  database.run("CREATE TABLE plants (garden TEXT NOT NULL)");
  const add = database.query("INSERT INTO plants VALUES ('home')");
  for (let count = 0; count < plants; count++) add.run();
  return { quota: new Quota(database, "plants", plantsMax), database };
}

/** Whether the garden is full after each deletion. */
function deleteFrom(quota: Quota, deletions: number): boolean[] {
  return Array.from({ length: deletions }, () => {
    quota.count("home", -1);
    return quota.isFull("home");
  });
}

test("a garden that holds more than it may is not counted anew for each deletion", () => {
  const { quota, database } = makeGarden(plantsMax + 2);
  expect(quota.isFull("home")).toBe(true);
  // Whoever counted now would find none.
  database.run("DELETE FROM plants");
  expect(deleteFrom(quota, 3)).toEqual([true, true, false]);
});

test("deletions from a garden that was not counted yet are not counted", () => {
  const { quota, database } = makeGarden(plantsMax);
  database.run("DELETE FROM plants WHERE rowid = 1");
  quota.count("home", -1);
  expect(quota.isFull("home")).toBe(false);
  quota.count("home", 1);
  expect(quota.isFull("home")).toBe(true);
});

test("when there are more gardens than there is room for, all are counted again", () => {
  const { quota, database } = makeGarden(plantsMax);
  expect(quota.isFull("home")).toBe(true);
  for (let other = 1; other < 65_536; other++) quota.isFull(`garden ${other}`);
  database.run("DELETE FROM plants");
  expect(quota.isFull("home")).toBe(true);
  quota.isFull("one more");
  expect(quota.isFull("home")).toBe(false);
});
