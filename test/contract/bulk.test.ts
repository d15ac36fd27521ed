/** Many plants in one request: to create them, with a key or without, to change and delete them. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

const far = 2n ** 53n + 1n;
const [fern, ivy, moss] = ["Fern", "Ivy", "Moss"].map((name, at) => ({ name, id: at + 1 }));
const created = (id: number | bigint) => ({ status: 201, id });
const replayed = (id: number) => ({ ...created(id), replayed: true });
const conflict = { status: 409, code: "conflict", detail: expect.any(String) };
const mismatch = { status: 422, code: "idempotency-mismatch", detail: expect.any(String) };
const idsTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

onEachEngine(({ call, list, grow, plant }) => {
  describe("a bulk", () => {
    const post = async (body: object | string, headers?: Record<string, string>) =>
      (await call("POST /plants/bulk", 200, body, headers)).json;

    test("creates a plant for each item, with a result for each in their order, or a refusal", async () => {
      const plants = [moss, { name: "Reed" }, fern, fern, { name: "Far", id: far }];
      const results = [created(3), created(4), created(1), conflict, created(far)];
      expect(await post(plants)).toEqual(results);
      expect(await list()).toEqual(["Fern", "Moss", "Reed", "Far"]);
    });

    test("takes plants of 4,096 characters, any space around them, and 10,000 of them", async () => {
      const inside = `{"name":"Fern"${" ".repeat(4_096 - 15)}}`;
      expect(await post(`[${inside},${" ".repeat(100_000)}${inside}]`)).toHaveLength(2);
      const results = await post(Array(10_000).fill({ name: "Fern", id: 7 }));
      expect([results[0], results.at(-1), results.length]).toEqual([created(7), conflict, 10_000]);
    });

    test("with an Idempotency-Key creates nothing twice, and remembers each plant by its place", async () => {
      const keyed = (...plants: unknown[]) => post(plants, { "Idempotency-Key": "~".repeat(240) });
      const reed = { name: "Reed" };
      expect(await keyed(reed, ivy, ivy)).toEqual([created(1), created(2), conflict]);
      // Another plant is refused where one is remembered, and created where one was refused.
      expect(await keyed(reed, moss, { name: "Rue" })).toEqual([replayed(1), mismatch, created(3)]);
      expect(await list()).toEqual(["Reed", "Ivy", "Rue"]);
    });

    test("with an Idempotency-Key tells 300 plants apart that are all alike", async () => {
      const keyed = () => post(Array(300).fill({ name: "Fern" }), { "Idempotency-Key": "k" });
      expect(await keyed()).toEqual(idsTo(300).map(created));
      expect(await keyed()).toEqual(idsTo(300).map(replayed));
    });

    test.each([
      ["256 plants", 513, fern, 3],
      ["16 KiB of names and tags", 200, { name: "x".repeat(200), tag: "y".repeat(100) }, 4],
    ])("is committed in groups, each until it has %s", async (_, plants, each, commits) => {
      const countCommits = async () => {
        const { text } = await call("GET /metrics", 200);
        return Number(/^plantstore_commit_group_size_count (\d+)$/m.exec(text)?.[1]);
      };
      const before = await countCommits();
      await post(Array(plants).fill({ ...each, id: undefined }));
      expect((await countCommits()) - before).toBe(commits);
    });
  });

  test("a text that isn't JSON is refused as a whole, with the place where it stops being JSON", async () => {
    const at = (character: number) =>
      `The body is not valid JSON: see what begins at character ${character}.`;
    const early = "The body is not valid JSON: it ends too early.";
    const refusals = {
      "POST /plants/bulk": [
        ['[7, {"name":"a",}]', at(5)],
        ['[{"name":"a"} {}]', at(15)],
        ["[7, tru]", at(5)],
        ["[]]", at(3)],
        ["[,]", at(2)],
        ['[{"name":"a"},]', at(15)],
        ['[{"name":"a"}', early],
        ["[", early],
      ],
      "POST /plants/bulk-delete": [
        ['{"ids": [1, 01]}', at(13)],
        ['{"ids": [1 2]}', at(12)],
        ['{"ids": [1]', early],
        ['{"tag": tru, "ids": [1]}', at(9)],
        ['{"ids": [1],}', at(13)],
      ],
      "POST /plants/bulk-update": [['{"ids": [1], "set": {"tag": }}', at(21)]],
    };
    for (const [request, texts] of Object.entries(refusals)) {
      for (const [text = "", detail] of texts) {
        const { json } = await call(request, 400, text);
        expect({ text, errors: json.errors }).toEqual({ text, errors: [{ pointer: "", detail }] });
      }
    }
  });

  describe("a bulk delete", () => {
    const remove = async (...ids: (number | bigint)[]) =>
      (await call("POST /plants/bulk-delete", 200, { ids })).json;

    test("deletes plants, each once, and lists the ids without one in their order", async () => {
      await grow("Fern", "Ivy", "Moss");
      expect(await remove(9, 3, 1, 8, 9, 3)).toEqual({ deleted: 2, missing: [9, 8] });
      expect(await list()).toEqual(["Ivy"]);
    });

    test("finds ids exactly beyond 2^53, and takes 1.0 for 1", async () => {
      await plant([{ id: far }]);
      expect(await remove(far + 1n)).toEqual({ deleted: 0, missing: [far + 1n] });
      expect(await remove(far, -(2n ** 63n))).toEqual({ deleted: 1, missing: [-(2n ** 63n)] });
      const text = '{"ids":[1.0,1e1,9223372036854775807]}';
      const { json } = await call("POST /plants/bulk-delete", 200, text);
      expect(json).toEqual({ deleted: 0, missing: [1, 10, 2n ** 63n - 1n] });
    });
  });

  describe("a bulk update", () => {
    const update = async (ids: readonly number[], set: object) =>
      (await call("POST /plants/bulk-update", 200, { ids, set })).json;

    test("with null removes the tags, and takes no id", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);
      expect(await update([1], { tag: null })).toEqual({ updated: 1, missing: [] });
      expect((await call("GET /plants", 200)).json).toEqual([{ name: "Fern", tag: "" }]);
      const withId = { ids: [1], set: { id: 1, tag: "hall" } };
      expect((await call("POST /plants/bulk-update", 400, withId)).errors).toEqual(["/set/id"]);
    });

    test("sets fields of many plants, and lists the ids without one in their order", async () => {
      await plant(["shade", "", ""].map((tag, at) => ({ id: BigInt(at + 1), tag })));
      const changed = await update([9, 2, 1, 8, 2], { tag: "shade" });
      expect(changed).toEqual({ updated: 2, missing: [9, 8] });
      expect((await call("GET /plants", 200)).json).toEqual(
        ["shade", "shade", ""].map((tag) => ({ name: "Fern", tag })),
      );
      // The first one was like that already.
      expect((await call("GET /events?after=3", 200)).json).toMatchObject([
        { type: "plant.replaced", plant: { id: 2 } },
      ]);
    });

    test("takes a set of 4,096 characters, and any space around it", async () => {
      await grow("Fern");
      const set = `${'{"tag":"x"'.padEnd(4_095)}}`;
      const body = `{"ids":[1],${" ".repeat(100_000)}"set":${set}}`;
      expect((await call("POST /plants/bulk-update", 200, body)).json.updated).toBe(1);
    });

    test("changes more plants than fit into one commit, and takes 10,000 ids", async () => {
      await grow(...idsTo(600).map((id) => `Plant ${id}`));
      const tag = "x".repeat(100);
      const { updated, missing } = await update(idsTo(10_000), { tag });
      expect([updated, missing.length]).toEqual([600, 9_400]);
      expect((await call("GET /tags", 200)).json).toEqual([{ tag, plants: 600 }]);
    });
  });
});
