/** Bulk requests: how much is done at a time, and how much of a bad line is listed. */
import { expect, test } from "bun:test";
import { Bulk, linesMax } from "./bulk.ts";

test.each([
  ["empty lines", "\n".repeat(linesMax), 100],
  ["long lines", `{"x":"${"x".repeat(4_000)}"}\n`.repeat(260), 20],
])("the thread is given back while %s are read, and while they are sent", async (_, text, min) => {
  const bulk = new Bulk(text);
  let turns = 0;
  for await (const _ of bulk.readSlices(async () => void turns++));
  expect(turns).toBeGreaterThan(min);
  const body = bulk.renderResults();
  if (typeof body === "string") throw new Error("It is sent whole.");
  for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
    expect(chunk.length).toBeLessThan(20_000);
  }
});

test("a line lists ten errors and says how many more there are", () => {
  const members = Array.from({ length: 50 }, (_, index) => `"${index}${"x".repeat(9)}":1`);
  const results = new Bulk(`{"name":"a",${members}}`).renderResults();
  const result = JSON.parse(String(results));
  expect(result.errors).toHaveLength(10);
  expect(result.detail).toEndWith("(and 49 more; see errors).");
});
