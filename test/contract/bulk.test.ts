/** Many plants in one request: to create them, with a key or without, to change and delete them. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

/** The first integer that a double can't hold. */
const idBeyondDoubles = 2n ** 53n + 1n;

/** The results of plants that were refused. */
const conflict = { status: 409, code: "conflict", detail: expect.any(String) };
const mismatch = { status: 422, code: "idempotency-mismatch", detail: expect.any(String) };

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

onEachEngine(({ call, list, grow, plant }) => {
  describe("a bulk", () => {
    test("creates the plants and returns a result for each, in the same order", async () => {
      const plants = [{ name: "Moss", id: 3 }, { name: "Reed" }, { name: "Fern", id: 1 }];

      const { json } = await call("POST /plants/bulk", 200, plants);

      expect(json).toEqual([
        { status: 201, id: 3 },
        { status: 201, id: 4 },
        { status: 201, id: 1 },
      ]);
      expect(await list()).toEqual(["Fern", "Moss", "Reed"]);
    });

    test("refuses a plant whose id is taken, and creates the others", async () => {
      const plants = [{ name: "Fern", id: 1 }, { name: "Fern", id: 1 }, { name: "Reed" }];

      const { json } = await call("POST /plants/bulk", 200, plants);

      expect(json).toEqual([{ status: 201, id: 1 }, conflict, { status: 201, id: 2 }]);
      expect(await list()).toEqual(["Fern", "Reed"]);
    });

    test("keeps an id beyond 2^53 exactly", async () => {
      const plants = [{ name: "Fern", id: idBeyondDoubles }];

      const { json } = await call("POST /plants/bulk", 200, plants);

      expect(json).toEqual([{ status: 201, id: idBeyondDoubles }]);
      expect((await call("GET /plants?include=id", 200)).json).toEqual([
        { id: idBeyondDoubles, name: "Fern", tag: "" },
      ]);
    });

    test("takes plants of 4,096 characters each, and any space between them", async () => {
      const beginning = '{"name":"Fern"';
      const longPlant = `${beginning.padEnd(4_095)}}`;
      const body = `[${longPlant},${" ".repeat(100_000)}${longPlant}]`;

      const { json } = await call("POST /plants/bulk", 200, body);

      expect(json).toHaveLength(2);
    });

    test("takes 10,000 plants", async () => {
      const plants = Array(10_000).fill({ name: "Fern", id: 7 });

      const { json } = await call("POST /plants/bulk", 200, plants);

      expect(json).toHaveLength(10_000);
      expect(json.at(0)).toEqual({ status: 201, id: 7 });
      expect(json.at(-1)).toEqual(conflict);
    });

    /** How many groups of writes the service has committed so far. */
    async function countCommits(): Promise<number> {
      const { text } = await call("GET /metrics", 200);
      return Number(/^plantstore_commit_group_size_count (\d+)$/m.exec(text)?.[1]);
    }

    test("is committed in groups of up to 256 plants", async () => {
      const before = await countCommits();

      await call("POST /plants/bulk", 200, Array(513).fill({ name: "Fern" }));

      expect((await countCommits()) - before).toBe(3);
    });

    test("is committed in groups that end at 16,384 characters of names and tags", async () => {
      const before = await countCommits();

      // 55 of them go into a group.
      const largest = { name: "x".repeat(200), tag: "y".repeat(100) };
      await call("POST /plants/bulk", 200, Array(200).fill(largest));

      expect((await countCommits()) - before).toBe(4);
    });
  });

  describe("a bulk with an Idempotency-Key", () => {
    test("of 240 characters can be sent again, and creates nothing twice", async () => {
      const plants = [{ name: "Reed" }, { name: "Ivy", id: 2 }];
      const key = { "Idempotency-Key": "~".repeat(240) };

      const first = await call("POST /plants/bulk", 200, plants, key);
      const retry = await call("POST /plants/bulk", 200, plants, key);

      expect(first.json).toEqual([
        { status: 201, id: 1 },
        { status: 201, id: 2 },
      ]);
      expect(retry.json).toEqual([
        { status: 201, id: 1, replayed: true },
        { status: 201, id: 2, replayed: true },
      ]);
      expect(await list()).toEqual(["Reed", "Ivy"]);
    });

    test("refuses another plant in the place of one that was stored", async () => {
      const key = { "Idempotency-Key": "k" };
      await call("POST /plants/bulk", 200, [{ name: "Reed" }, { name: "Ivy", id: 2 }], key);

      const changed = [{ name: "Reed" }, { name: "Moss", id: 3 }, { name: "Rue" }];
      const { json } = await call("POST /plants/bulk", 200, changed, key);

      expect(json).toEqual([
        { status: 201, id: 1, replayed: true },
        mismatch,
        { status: 201, id: 3 },
      ]);
      expect(await list()).toEqual(["Reed", "Ivy", "Rue"]);
    });

    test("creates another plant in the place of one that was refused", async () => {
      const key = { "Idempotency-Key": "k" };
      const ivy = { name: "Ivy", id: 2 };
      const first = await call("POST /plants/bulk", 200, [ivy, ivy], key);
      expect(first.json).toEqual([{ status: 201, id: 2 }, conflict]);

      const { json } = await call("POST /plants/bulk", 200, [ivy, { name: "Rue" }], key);

      expect(json).toEqual([
        { status: 201, id: 2, replayed: true },
        { status: 201, id: 3 },
      ]);
      expect(await list()).toEqual(["Ivy", "Rue"]);
    });

    test("tells 300 plants apart that are all alike", async () => {
      const plants = Array(300).fill({ name: "Fern" });
      const key = { "Idempotency-Key": "k" };

      const first = await call("POST /plants/bulk", 200, plants, key);
      const retry = await call("POST /plants/bulk", 200, plants, key);

      expect(first.json).toEqual(range(1, 300).map((id) => ({ status: 201, id })));
      expect(retry.json).toEqual(range(1, 300).map((id) => ({ status: 201, id, replayed: true })));
    });
  });

  describe("a body that isn't JSON is a 400", () => {
    test.each([
      ["POST /plants/bulk", '[7, {"name":"a",}]', 5],
      ["POST /plants/bulk", '[{"name":"a"} {}]', 15],
      ["POST /plants/bulk", "[7, tru]", 5],
      ["POST /plants/bulk", "[]]", 3],
      ["POST /plants/bulk", "[,]", 2],
      ["POST /plants/bulk", '[{"name":"a"},]', 15],
      ["POST /plants/bulk-delete", '{"ids": [1, 01]}', 13],
      ["POST /plants/bulk-delete", '{"ids": [1 2]}', 12],
      ["POST /plants/bulk-delete", '{"tag": tru, "ids": [1]}', 9],
      ["POST /plants/bulk-delete", '{"ids": [1],}', 13],
      ["POST /plants/bulk-update", '{"ids": [1], "set": {"tag": }}', 21],
    ])(
      "that says where it is wrong: %s with %s at character %s",
      async (request, body, character) => {
        const { json } = await call(request, 400, body);

        const detail = `The body is not valid JSON: see what begins at character ${character}.`;
        expect(json.errors).toEqual([{ pointer: "", detail }]);
      },
    );

    test.each([
      ["POST /plants/bulk", '[{"name":"a"}'],
      ["POST /plants/bulk", "["],
      ["POST /plants/bulk-delete", '{"ids": [1]'],
    ])("that says if it ends too early: %s with %s", async (request, body) => {
      const { json } = await call(request, 400, body);

      const detail = "The body is not valid JSON: it ends too early.";
      expect(json.errors).toEqual([{ pointer: "", detail }]);
    });
  });

  describe("a bulk delete", () => {
    test("deletes the plants and lists the missing ids in the order they were sent", async () => {
      await grow("Fern", "Ivy", "Moss");

      const { json } = await call("POST /plants/bulk-delete", 200, { ids: [9, 3, 1, 8] });

      expect(json).toEqual({ deleted: 2, missing: [9, 8] });
      expect(await list()).toEqual(["Ivy"]);
    });

    test("counts an id that is sent twice once", async () => {
      await grow("Fern", "Ivy", "Moss");

      const { json } = await call("POST /plants/bulk-delete", 200, { ids: [9, 3, 1, 8, 9, 3] });

      expect(json).toEqual({ deleted: 2, missing: [9, 8] });
    });

    test("finds ids exactly beyond 2^53", async () => {
      await plant([{ id: idBeyondDoubles }]);
      const neighbor = idBeyondDoubles + 1n;
      const lowest = -(2n ** 63n);

      const first = await call("POST /plants/bulk-delete", 200, { ids: [neighbor] });
      const second = await call("POST /plants/bulk-delete", 200, {
        ids: [idBeyondDoubles, lowest],
      });

      expect(first.json).toEqual({ deleted: 0, missing: [neighbor] });
      expect(second.json).toEqual({ deleted: 1, missing: [lowest] });
    });

    test("takes every spelling of an integer that JSON has", async () => {
      const body = '{"ids":[1.0,1e1,9223372036854775807]}';

      const { json } = await call("POST /plants/bulk-delete", 200, body);

      expect(json).toEqual({ deleted: 0, missing: [1, 10, 9223372036854775807n] });
    });
  });

  describe("a bulk update", () => {
    test("changes the plants and lists the missing ids in the order they were sent", async () => {
      await grow("Fern", "Ivy", "Moss");

      const body = { ids: [9, 2, 1, 8], set: { tag: "shade" } };
      const { json } = await call("POST /plants/bulk-update", 200, body);

      expect(json).toEqual({ updated: 2, missing: [9, 8] });
      expect((await call("GET /plants", 200)).json).toEqual([
        { name: "Fern", tag: "shade" },
        { name: "Ivy", tag: "shade" },
        { name: "Moss", tag: "" },
      ]);
    });

    test("counts an id that is sent twice once", async () => {
      await grow("Fern", "Ivy");

      const body = { ids: [9, 2, 1, 2, 9], set: { tag: "shade" } };
      const { json } = await call("POST /plants/bulk-update", 200, body);

      expect(json).toEqual({ updated: 2, missing: [9] });
    });

    test("counts a plant that is like that already, without an event", async () => {
      await plant([
        { id: 1n, tag: "shade" },
        { id: 2n, tag: "" },
      ]);

      const body = { ids: [1, 2], set: { tag: "shade" } };
      const { json } = await call("POST /plants/bulk-update", 200, body);

      expect(json).toEqual({ updated: 2, missing: [] });
      expect((await call("GET /events?after=2", 200)).json).toMatchObject([
        { type: "plant.replaced", plant: { id: 2 } },
      ]);
    });

    test("removes the tags with null", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);

      const body = { ids: [1], set: { tag: null } };
      const { json } = await call("POST /plants/bulk-update", 200, body);

      expect(json).toEqual({ updated: 1, missing: [] });
      expect((await call("GET /plants", 200)).json).toEqual([{ name: "Fern", tag: "" }]);
    });

    test("refuses to set an id", async () => {
      await grow("Fern");

      const body = { ids: [1], set: { id: 1, tag: "hall" } };
      const { errors } = await call("POST /plants/bulk-update", 400, body);

      expect(errors).toEqual(["/set/id"]);
    });

    test("takes a set of 4,096 characters, and any space around it", async () => {
      await grow("Fern");
      const beginning = '{"tag":"x"';
      const longSet = `${beginning.padEnd(4_095)}}`;
      const body = `{"ids":[1],${" ".repeat(100_000)}"set":${longSet}}`;

      const { json } = await call("POST /plants/bulk-update", 200, body);

      expect(json.updated).toBe(1);
    });

    test("changes more plants than fit into one commit", async () => {
      await grow(...range(1, 600).map((id) => `Plant ${id}`));
      const tag = "x".repeat(100);

      const body = { ids: range(1, 600), set: { tag } };
      const { json } = await call("POST /plants/bulk-update", 200, body);

      expect(json).toEqual({ updated: 600, missing: [] });
      expect((await call("GET /tags", 200)).json).toEqual([{ tag, plants: 600 }]);
    });

    test("takes 10,000 ids", async () => {
      await grow(...range(1, 600).map((id) => `Plant ${id}`));

      const body = { ids: range(1, 10_000), set: { tag: "shade" } };
      const { json } = await call("POST /plants/bulk-update", 200, body);

      expect(json).toEqual({ updated: 600, missing: range(601, 10_000) });
    });
  });
});
