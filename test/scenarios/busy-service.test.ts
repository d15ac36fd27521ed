/** A service that has too much to do: whom it refuses, before it has done anything for them. */
import { expect, spyOn, test } from "bun:test";
import { openWorld } from "./scenario.ts";

const world = openWorld("SQLite");

test("who waited too long for a turn is told to come back, and nothing comes of the request", async () => {
  const token = await world.makeToken({ user: "alice", scope: "write" });
  const headers = { Authorization: `Bearer ${token}`, "Content-Type": "application/json" };
  let nowMs = performance.now();
  const clock = spyOn(performance, "now").mockImplementation(() => nowMs);
  try {
    // So many pass in any turn.
    const passing = Array.from({ length: 32 }, () => world.fetch("GET /healthz"));
    nowMs += 25;
    const waiting = [
      world.fetch("GET /plants", { headers }),
      world.fetch("POST /plants", { headers, body: '{"name":"Fern"}' }),
    ];
    nowMs += 501;
    const refused = await Promise.all(waiting);
    expect(refused.map(({ status }) => status)).toEqual([503, 503]);
    expect(refused.map((each) => each.headers.get("Retry-After"))).toEqual(["1", "1"]);
    expect((await Promise.all(passing)).every(({ ok }) => ok)).toBe(true);
  } finally {
    clock.mockRestore();
  }
  expect(await world.storage.list("alice", undefined, 1)).toEqual([]);
});
