/** Safe retries: what an Idempotency-Key promises, and which keys there are. */
import { describe, expect, test } from "bun:test";
import { engines, openWorld } from "./scenario.ts";

describe.each(engines)("on %s", (engine) => {
  const world = openWorld(engine);
  let callers = 0;

  /** A caller with a garden of its own; creates plants under a key. */
  async function makeCaller(garden = `keys-${++callers}`) {
    const token = await world.makeToken({ user: "alice", garden });
    return async (key: string, body: object) => {
      const response = await world.fetch("POST /plants", {
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          "idempotency-key": key,
        },
        body: JSON.stringify(body),
      });
      return {
        status: response.status,
        location: response.headers.get("location"),
        replayed: response.headers.get("idempotency-replayed"),
        body: await response.text(),
      };
    };
  }

  describe("an idempotency key", () => {
    test("gives the first answer again", async () => {
      const create = await makeCaller();
      const first = await create("k", { name: "Fern", tag: "shade" });
      const second = await create("k", { name: "Fern", tag: "shade" });
      expect(first).toMatchObject({ status: 201, location: "/plants/1", replayed: null });
      expect(second).toEqual({ ...first, replayed: "true" });
    });

    test("means the same quoted and bare", async () => {
      const create = await makeCaller();
      await create('"k-1"', { name: "Fern" });
      expect(await create("k-1", { name: "Fern" })).toMatchObject({ replayed: "true" });
      expect(await create('"a\\"b"', { name: "Fern" })).toMatchObject({ replayed: null });
      expect(await create('a"b', { name: "Fern" })).toMatchObject({ replayed: "true" });
    });

    test("takes an absent tag and an empty one for the same request", async () => {
      const create = await makeCaller();
      await create("k", { name: "Fern" });
      expect(await create("k", { tag: "", name: "Fern" })).toMatchObject({ replayed: "true" });
    });

    test.each([{ name: "Ivy" }, { name: "Fern", tag: "x" }, { name: "Fern", id: 1 }])(
      "refuses another request: %p",
      async (other) => {
        const create = await makeCaller();
        await create("k", { name: "Fern" });
        const refused = await create("k", other);
        expect(refused.status).toBe(422);
        expect(refused.body).toContain("urn:plantstore:problem:idempotency-mismatch");
      },
    );

    test("belongs to its garden", async () => {
      const [mine, theirs] = [await makeCaller(), await makeCaller()];
      await mine("k", { name: "Fern" });
      expect(await theirs("k", { name: "Ivy" })).toMatchObject({ status: 201, replayed: null });
    });

    test("makes one plant of many requests at the same time", async () => {
      const create = await makeCaller("crowd");
      const answers = await Promise.all(
        Array.from({ length: 50 }, () => create("k", { name: "Fern" })),
      );
      expect(new Set(answers.map(({ location }) => location))).toEqual(new Set(["/plants/1"]));
      expect(answers.filter(({ replayed }) => replayed === null)).toHaveLength(1);
      expect(await world.storage.list("crowd", undefined, 10)).toHaveLength(1);
    });

    test("is not used up by a request that was refused", async () => {
      const create = await makeCaller();
      await create("first", { name: "Fern", id: 7 });
      expect(await create("k", { name: "Ivy", id: 7 })).toMatchObject({ status: 409 });
      expect(await create("k", { name: "" })).toMatchObject({ status: 400 });
      expect(await create("k", { name: "Ivy", id: 8 })).toMatchObject({
        status: 201,
        replayed: null,
      });
    });

    test.each(["a", "~!@#$%^&*()", "x".repeat(255), `"${"x".repeat(255)}"`])(
      "may be %s",
      async (key) => {
        const create = await makeCaller();
        expect((await create(key, { name: "Fern" })).status).toBe(201);
      },
    );

    test.each(["a b", '""', '"open', "x".repeat(256), `"${"x".repeat(256)}"`, "\u00e9", "a, b"])(
      "may not be %s",
      async (key) => {
        const create = await makeCaller();
        const refused = await create(key, { name: "Fern" });
        expect(refused.status).toBe(400);
        expect(refused.body).toContain('"header":"Idempotency-Key"');
      },
    );
  });
});
