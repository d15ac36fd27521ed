/** What an operator is told of requests that failed, and callers are not. */
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { overloaded, PlantStoreError } from "../../src/domain/errors.ts";
import { createLog } from "../../src/log.ts";
import { openWorld } from "./scenario.ts";

let logged = "";
const log = createLog("json", (lines) => {
  logged += lines;
});
const world = openWorld("SQLite", {}, log);
let reading: ReturnType<typeof spyOn<typeof world.storage, "list">>;

beforeEach(() => {
  reading = spyOn(world.storage, "list");
});

afterEach(() => {
  reading.mockRestore();
});

/** The status and the body of a list that cannot be read; what was logged is in `logged`. */
async function listWith(failure: Error): Promise<[status: number, body: string]> {
  const token = await world.makeToken({ user: "alice" });
  const headers = { Authorization: `Bearer ${token}`, "X-Request-Id": "the-one" };
  reading.mockRejectedValue(failure);
  logged = "";
  const response = await world.fetch("GET /plants", { headers });
  log.flush();
  return [response.status, await response.text()];
}

test("a bug is logged whole, with the id of the request, and answered without a word of it", async () => {
  const [status, body] = await listWith(new TypeError("what went wrong inside"));
  expect(status).toBe(500);
  expect(body).not.toContain("inside");
  expect(logged).toMatch(/"request failed","requestId":"the-one","code":"internal".+TypeError/);
  expect(logged).toContain("what went wrong inside");
});

test.each([
  ["unavailable", 503],
  ["storage-full", 507],
] as const)("a storage that is %s is logged with its cause", async (code, expected) => {
  const cause = new Error("the disk is gone");
  const [status, body] = await listWith(new PlantStoreError(code, "Not now.", { cause }));
  expect(status).toBe(expected);
  expect(body).not.toContain("disk");
  expect(logged).toContain(`"request failed","requestId":"the-one","code":"${code}"`);
  expect(logged).toContain("the disk is gone");
});

test("overload is told by how many it met, and not as a failure of each", async () => {
  const told: unknown[][] = [];
  const telling = spyOn(log, "event").mockImplementation((...event) => {
    told.push(event);
  });
  for (let time = 0; time < 3; time++) expect((await listWith(overloaded))[0]).toBe(503);
  while (told.length === 0) await Bun.sleep(50);
  telling.mockRestore();
  // Fewer only where more than a second has passed between them.
  expect(told[0]).toEqual(["warn", "overloaded", { refused: expect.any(Number) }]);
});
