/** Invalid bulks: each is refused as a whole, lists where its errors are, and changes nothing. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

const ids10001 = Array.from({ length: 10_001 }, (_, index) => index);

onEachEngine(({ call, grow }) => {
  beforeEach(() => grow("Fern"));

  // For every test here: nothing was created, changed or deleted.
  afterEach(async () => {
    const { json } = await call("GET /me", 200);
    expect(json).toMatchObject({ plants: 1, lastEvent: 1 });
  });

  describe("a bulk", () => {
    test.each(["7", "null", '"x"', "[]"])(
      "refuses %s as a plant, and says which it is",
      async (item) => {
        const { errors } = await call("POST /plants/bulk", 400, `[{"name":"Fern"},${item}]`);
        expect(errors).toEqual(["/1"]);
      },
    );

    test("refuses a plant of 4,097 characters of JSON", async () => {
      const longPlant = `${'{"name":"a"'.padEnd(4_096)}}`;
      const { errors } = await call("POST /plants/bulk", 400, `[{"name":"Fern"},${longPlant}]`);
      expect(errors).toEqual(["/1"]);
    });

    test("lists the invalid fields of all plants", async () => {
      const plants = [{ name: "" }, { name: "Ivy", tag: null, color: 1 }];
      const { errors } = await call("POST /plants/bulk", 400, plants);
      expect(errors).toEqual(["/0/name", "/1/color", "/1/tag"]);
    });

    test("lists an invalid parameter together with an invalid plant", async () => {
      const { errors } = await call("POST /plants/bulk?include=id", 400, [{}]);
      expect(errors).toEqual(["/0/name", "include"]);
    });

    test.each(["", "{}", "null", "[]"])(
      "refuses a body that isn't an array with plants: '%s'",
      async (body) => {
        const { errors } = await call("POST /plants/bulk", 400, body);
        expect(errors).toEqual([""]);
      },
    );

    test.each([
      "[",
      "]",
      "[,]",
      "[]{}",
      "[1 2]",
      "['a']",
      "[-]",
      '[7,{"name":}]',
      '[{"name":"a"},]',
      '[{"name":"a"}}',
      '[{"name":"a"}{}]',
      '[{"name":"a"},1e]',
      '[{"name":"Fern"},{"name":"a",}]',
      '[{"name":"Fern"},{"a":}]',
      '[{"name":"Fern"},{]]',
      '[{"name":"Fern"},01]',
      '[{"name":"Fern"},tru]',
      '[{"name":"Fern"},"\\x"]',
    ])("refuses a body that isn't JSON: %s", async (body) => {
      const { errors } = await call("POST /plants/bulk", 400, body);
      expect(errors).toEqual([""]);
    });

    test("refuses a byte order mark", async () => {
      const { errors } = await call("POST /plants/bulk", 400, '\ufeff[{"name":"a"}]');
      expect(errors).toEqual([""]);
    });

    test("refuses 10,001 plants", async () => {
      await call("POST /plants/bulk", 413, Array(10_001).fill({ name: "Ivy" }));
    });

    test("refuses an Idempotency-Key of 241 characters", async () => {
      const headers = { "Idempotency-Key": "~".repeat(241) };
      const { errors } = await call("POST /plants/bulk", 400, [{ name: "Ivy" }], headers);
      expect(errors).toEqual(["Idempotency-Key"]);
    });
  });

  describe("a bulk delete", () => {
    test.each(["{}", '{"ids":[]}', '{"ids":7}', '{"ids":[7],"ids":[8]}'])(
      "refuses a body without one list of ids: %s",
      async (body) => {
        const { errors } = await call("POST /plants/bulk-delete", 400, body);
        expect(errors).toEqual(["/ids"]);
      },
    );

    test("refuses an unknown field", async () => {
      const { errors } = await call("POST /plants/bulk-delete", 400, { ids: [7], tag: "" });
      expect(errors).toEqual(["/tag"]);
    });

    test("refuses a parameter", async () => {
      const { errors } = await call("POST /plants/bulk-delete?include=id", 400, { ids: [7] });
      expect(errors).toEqual(["include"]);
    });

    test("refuses an array instead of an object", async () => {
      const { errors } = await call("POST /plants/bulk-delete", 400, "[7]");
      expect(errors).toEqual([""]);
    });

    test.each([
      "",
      "{ids:[7]}",
      '{"ids":[7]',
      '{"ids":[7}',
      '{"ids":[7],}',
      '{"ids":[7]}}',
      '{"ids" [7]}',
      '{"ids":[7,]}',
      '{"ids":["7",07]}',
      '{"ids":07}',
      '{"ids":[7],"tag":tru}',
      '{"ids":[7],"tag":[01]}',
    ])("refuses a body that isn't JSON: '%s'", async (body) => {
      const { errors } = await call("POST /plants/bulk-delete", 400, body);
      expect(errors).toEqual([""]);
    });

    test("lists every id that isn't a 64-bit integer", async () => {
      const ids = [
        "null",
        '"1"',
        "true",
        "[]",
        "1.5",
        "1e-1",
        "1e400",
        "184467440737095516160",
        "9223372036854775808",
        "-9223372036854775809",
      ];

      const body = `{"ids":[${ids.join(",")}]}`;
      const { errors } = await call("POST /plants/bulk-delete", 400, body);

      expect(errors).toEqual(ids.map((_, index) => `/ids/${index}`));
    });

    test.each([
      { what: "a long string", id: "x".repeat(4_095) },
      { what: "an array of many arrays", id: [Array(4_000).fill([])] },
    ])("refuses $what as an id", async ({ id }) => {
      const { errors } = await call("POST /plants/bulk-delete", 400, { ids: [id] });
      expect(errors).toEqual(["/ids/0"]);
    });

    test("refuses 10,001 ids", async () => {
      await call("POST /plants/bulk-delete", 413, { ids: ids10001 });
    });
  });

  describe("a bulk update", () => {
    test.each(['{"ids":[7],"set":{"tag":}}', '{"ids":[7],"set":{"tag":""}'])(
      "refuses a body that isn't JSON: %s",
      async (body) => {
        const { errors } = await call("POST /plants/bulk-update", 400, body);
        expect(errors).toEqual([""]);
      },
    );

    test.each([{ set: { tag: "x" } }, { ids: [], set: { tag: "x" } }])(
      "refuses a body without ids: %j",
      async (body) => {
        const { errors } = await call("POST /plants/bulk-update", 400, body);
        expect(errors).toEqual(["/ids"]);
      },
    );

    test.each([{ ids: [1] }, { ids: [1], set: {} }, { ids: [1], set: [] }])(
      "refuses a body without a change: %j",
      async (body) => {
        const { errors } = await call("POST /plants/bulk-update", 400, body);
        expect(errors).toEqual(["/set"]);
      },
    );

    test("refuses ids and a change of the wrong type", async () => {
      const { errors } = await call("POST /plants/bulk-update", 400, { ids: 7, set: 7 });
      expect(errors).toEqual(["/ids", "/set"]);
    });

    test("refuses a repeated change", async () => {
      const body = '{"ids":7,"set":{},"set":{}}';
      const { errors } = await call("POST /plants/bulk-update", 400, body);
      expect(errors).toEqual(["/ids", "/set"]);
    });

    test("lists a wrong id, an unknown field and the wrong fields of the change", async () => {
      const body = { ids: ["1"], set: { id: 2, tag: 7 }, more: 1 };
      const { errors } = await call("POST /plants/bulk-update", 400, body);
      expect(errors).toEqual(["/ids/0", "/more", "/set/id", "/set/tag"]);
    });

    test("refuses a change of 4,097 characters of JSON", async () => {
      const change = `${'{"tag":"x"'.padEnd(4_096)}}`;
      const { errors } = await call("POST /plants/bulk-update", 400, `{"ids":[1],"set":${change}}`);
      expect(errors).toEqual(["/set"]);
    });

    test("refuses 10,001 ids", async () => {
      await call("POST /plants/bulk-update", 413, { ids: ids10001, set: { tag: "x" } });
    });
  });
});
