/** Many plants in one request: to create them, with a key or without, and to delete them. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

const far = 2n ** 53n + 1n;
const [fern, ivy, moss] = [
  { name: "Fern", id: 1 },
  { name: "Ivy", id: 2 },
  { name: "Moss", id: 3 },
];
const created = (id: number | bigint) => ({ status: 201, id });
const replayed = (id: number) => ({ ...created(id), replayed: true });
const conflict = { status: 409, code: "conflict", detail: expect.any(String) };
const mismatch = { status: 422, code: "idempotency-mismatch", detail: expect.any(String) };

onEachEngine(({ call, list, grow, plant }) => {
  describe("a bulk", () => {
    const post = (body: object | string, status = 200, headers?: Record<string, string>) =>
      call("POST /plants/bulk", status, body, headers);
    const refuse = async (body: object | string) => {
      const { errors } = await post(body, 400);
      expect(await list()).toEqual([]);
      return errors;
    };

    test("creates a plant for each item, with a result for each in their order", async () => {
      const { json, headers } = await post([moss, { name: "Reed" }, fern]);
      expect(json).toEqual([created(3), created(4), created(1)]);
      expect(headers.get("Content-Type")).toBe("application/json");
      expect(await list()).toEqual(["Fern", "Moss", "Reed"]);
      expect((await post([{ name: "Far", id: far }])).json).toEqual([created(far)]);
    });

    test("stores the others if one plant is refused", async () => {
      expect((await post([fern, fern, ivy])).json).toEqual([created(1), conflict, created(2)]);
      expect(await list()).toEqual(["Fern", "Ivy"]);
    });

    test("stores nothing if any plant is invalid, and names every wrong field", async () => {
      const wrong = [{ name: "", id: 2 }, { name: "a", tag: null, color: 1 }, {}];
      const expected = ["/1/name", "/2/color", "/2/tag", "/3/name"];
      expect((await refuse([fern, ...wrong, ivy])).toSorted()).toEqual(expected);
    });

    test.each([
      ...["7", "null", "[]", '"Fern"'].map((item) => [item, "/1"] as const),
      ['{"name":"a","n\\u0061me":"b"}', "/1/name"],
      ['{"name":"a","__proto__":{}}', "/1/__proto__"],
      ['{"name":"a",}', "/1"],
      ['{"name":"a"', "/1"],
      ["{]", "/1"],
      ['{"name":"a","id":01}', "/1"],
      [`{"name":"a"${" ".repeat(4_096)}}`, "/1"],
    ])("with the item %p is 400, and says where", async (item, pointer) => {
      expect(await refuse(`[{"name":"Fern"},${item}]`)).toContain(pointer);
    });

    const broken = ' {} {"name":"Fern"} null [ [,] ] [] []] []{} [{"name":"a"},] [{"name":"a"}}';
    test.each([...broken.split(" "), ...['[{"name":"a"}{}]', '\ufeff[{"name":"a"}]']])(
      "that is not one JSON array of plants is 400: %p",
      async (body) => {
        expect(await refuse(body)).toEqual([""]);
      },
    );

    test("lists at most 100 errors, those of the query among them", async () => {
      expect(await refuse(Array.from({ length: 150 }, () => ({})))).toHaveLength(100);
      for (const name of ["include", "limit", "color"]) {
        const { errors } = await call(`POST /plants/bulk?${name}=id`, 400, [{}]);
        expect(errors.toSorted()).toEqual(["/0/name", name]);
      }
    });

    test("takes plants of 4,096 characters, and any space around them", async () => {
      const inside = `{"name":"Fern"${" ".repeat(4_096 - 15)}}`;
      expect((await post(`[${inside},${" ".repeat(100_000)}${inside}]`)).json).toHaveLength(2);
    });

    test("takes 10,000 plants, and one more is 413", async () => {
      const many = (count: number) => Array.from({ length: count }, () => fern);
      await post(many(10_001), 413);
      const { json } = await post(many(10_000));
      expect([json[0], json.at(-1), json.length]).toEqual([created(1), conflict, 10_000]);
    });

    describe("with an Idempotency-Key", () => {
      const keyed = async (...plants: object[]) =>
        (await post(plants, 200, { "Idempotency-Key": "k" })).json;

      test("gives the same ids again, and creates nothing twice", async () => {
        expect(await keyed({ name: "Reed" }, { name: "Sage" })).toEqual([created(1), created(2)]);
        const again = await keyed({ name: "Reed" }, { name: "Sage" }, { name: "Rue" });
        expect(again).toEqual([replayed(1), replayed(2), created(3)]);
        expect(await list()).toEqual(["Reed", "Sage", "Rue"]);
      });

      test("is 422 for another plant at the same place, which is not created", async () => {
        expect(await keyed(fern, ivy)).toEqual([created(1), created(2)]);
        const rue = { name: "Rue", id: 4 };
        expect(await keyed(fern, moss, rue)).toEqual([replayed(1), mismatch, created(4)]);
        expect(await list()).toEqual(["Fern", "Ivy", "Rue"]);
      });

      test("remembers no plant that was refused", async () => {
        await post([fern, {}], 400, { "Idempotency-Key": "k" });
        expect(await keyed(ivy, ivy)).toEqual([created(2), conflict]);
        expect(await keyed(ivy, moss)).toEqual([replayed(2), created(3)]);
      });

      test("takes a key of 240 characters, and one more is 400", async () => {
        await post([fern], 200, { "Idempotency-Key": "~".repeat(240) });
        const refused = await post([ivy], 400, { "Idempotency-Key": "~".repeat(241) });
        expect(refused.errors).toEqual(["Idempotency-Key"]);
      });
    });
  });

  describe("a bulk delete", () => {
    const remove = async (...ids: (number | bigint)[]) =>
      (await call("POST /plants/bulk-delete", 200, { ids })).json;

    test("deletes plants, and lists the ids without one in their order", async () => {
      await grow("Fern", "Ivy", "Moss");
      expect(await remove(9, 3, 1, 8)).toEqual({ deleted: 2, missing: [9, 8] });
      expect(await list()).toEqual(["Ivy"]);
      expect(await remove(3, 2)).toEqual({ deleted: 1, missing: [3] });
    });

    test("counts an id that is given twice once", async () => {
      await grow("Fern");
      expect(await remove(1, 2, 1, 2)).toEqual({ deleted: 1, missing: [2] });
    });

    test("finds ids exactly beyond 2^53, and takes 1.0 for 1", async () => {
      await plant([{ id: far }]);
      expect(await remove(far + 1n)).toEqual({ deleted: 0, missing: [far + 1n] });
      expect(await remove(far, -(2n ** 63n))).toEqual({ deleted: 1, missing: [-(2n ** 63n)] });
      const text = '{"ids":[1.0,1e1,9223372036854775807]}';
      const { json } = await call("POST /plants/bulk-delete", 200, text);
      expect(json).toEqual({ deleted: 0, missing: [1, 10, 2n ** 63n - 1n] });
    });

    test("is 400 for whatever is no integer of 64 bits, and deletes nothing", async () => {
      await grow("Fern");
      const wrong = '"1",1.5,null,[],{},true,9223372036854775808,-9223372036854775809';
      const { errors } = await call("POST /plants/bulk-delete", 400, `{"ids":[1,${wrong}]}`);
      expect(errors).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((index) => `/ids/${index}`));
      expect(await list()).toEqual(["Fern"]);
    });

    test.each([
      ["{}", "/ids"],
      ['{"ids":[]}', "/ids"],
      ['{"ids":7}', "/ids"],
      ['{"ids":[7],"tag":""}', "/tag"],
      ['{"ids":[7],"ids":[8]}', "/ids"],
      ["[7]", ""],
      ['{"ids":[7]', ""],
      ['{"ids":[07]}', ""],
    ])("of %s is 400", async (body, pointer) => {
      expect((await call("POST /plants/bulk-delete", 400, body)).errors).toEqual([pointer]);
    });

    test("takes no parameters, and 10,000 ids; one more is 413", async () => {
      const { errors } = await call("POST /plants/bulk-delete?include=id", 400, { ids: [7] });
      expect(errors).toEqual(["include"]);
      const ids = Array.from({ length: 10_001 }, (_, index) => index);
      await call("POST /plants/bulk-delete", 413, { ids });
      expect(await remove(...ids.slice(1))).toEqual({ deleted: 0, missing: ids.slice(1) });
    });
  });
});
