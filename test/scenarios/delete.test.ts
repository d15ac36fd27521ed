/** Delete: the canonical id in the path, and what is not there. */
import { describe, expect, test } from "bun:test";
import { engines, openWorld, runScenarios, type Scenario } from "./scenario.ts";

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine);
  const given = [{ id: 1n }, { id: 7n }];

  const notCanonical = ["007", "+1", "1.0", "1e0", "-0", "0x1", "%31", "%", "%zz", "seven", "1%20"];
  const outOfRange = ["9223372036854775808", "-9223372036854775809", "1".repeat(400)];

  describe("delete", () => {
    runScenarios(world, [
      {
        name: "deletes the plant and answers without a body",
        given,
        request: "DELETE /plants/7",
        status: 204,
        answer: "",
        answerHeaders: { "Content-Type": null, "Cache-Control": "no-store" },
        left: [1n],
      },
      {
        name: "deletes a plant with a negative id",
        given: [{ id: -(2n ** 63n) }],
        request: "DELETE /plants/-9223372036854775808",
        status: 204,
        left: [],
      },
      {
        name: "tells neighbours beyond 2^53 apart",
        given: [{ id: 9007199254740992n }, { id: 9007199254740993n }],
        request: "DELETE /plants/9007199254740993",
        status: 204,
        left: [9007199254740992n],
      },
      {
        name: "does not find what was never there",
        given,
        request: "DELETE /plants/8",
        status: 404,
        problem: "not-found",
      },
      ...[...notCanonical, ...outOfRange].map(
        (id): Scenario => ({
          name: `refuses the id ${id.slice(0, 24)}`,
          given,
          request: `DELETE /plants/${id}`,
          status: 400,
          problem: "invalid-request",
          faults: ["id"],
        }),
      ),
      {
        name: "refuses a query",
        given,
        request: "DELETE /plants/7?force=1",
        status: 400,
        problem: "invalid-request",
        faults: ["force"],
      },
      {
        name: "refuses a body",
        given,
        request: "DELETE /plants/7",
        body: { name: "x" },
        status: 400,
        problem: "invalid-request",
        faults: [""],
      },
    ]);

    test("answers alike for what is gone, never was, or is in another garden", async () => {
      const mine = await world.makeToken({ user: "mine" });
      await world.storage.apply([
        { kind: "create", garden: "mine", id: 1n, name: "a", tag: "", idempotency: undefined },
        { kind: "create", garden: "theirs", id: 2n, name: "b", tag: "", idempotency: undefined },
      ]);
      const remove = (id: number) =>
        world.fetch(`DELETE /plants/${id}`, {
          headers: { authorization: `Bearer ${mine}`, "x-request-id": "same" },
        });
      expect((await remove(1)).status).toBe(204);
      const [gone, never, foreign] = [await remove(1), await remove(3), await remove(2)];
      const bodies = await Promise.all([gone, never, foreign].map((response) => response.text()));
      expect(new Set(bodies).size).toBe(1);
      const headers = [gone, never, foreign].map((response) =>
        JSON.stringify([...response.headers]),
      );
      expect(new Set(headers).size).toBe(1);
      expect(await world.storage.list("theirs", undefined, 5)).toHaveLength(1);
    });
  });
});
