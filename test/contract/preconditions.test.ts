/** Preconditions: which requests If-Match and If-None-Match let pass, and that a 412 changes nothing. */
import { describe, expect, test } from "bun:test";
import { onEachEngine } from "./garden.ts";

onEachEngine(({ call, list, grow, atOnce }) => {
  async function readEtag(): Promise<string> {
    const { headers } = await call("GET /plants/1", 200);
    return headers.get("ETag") ?? "";
  }

  /** What a refused write must not change, after `grow("Fern")`. */
  async function expectUnchanged(): Promise<void> {
    expect(await list()).toEqual(["Fern"]);
    expect((await call("GET /me", 200)).json).toMatchObject({ plants: 1, lastEvent: 1 });
  }

  test.each([
    { what: "the plant's ETag", condition: (etag: string) => etag },
    { what: "a list with its ETag", condition: (etag: string) => `, ,"other" ,,${etag},` },
    { what: "*", condition: () => "*" },
  ])("If-Match with $what lets every method pass", async ({ condition }) => {
    await grow("Fern");
    const headers = { "If-Match": condition(await readEtag()) };

    await call("GET /plants/1", 200, undefined, headers);
    await call("HEAD /plants/1", 200, undefined, headers);
    await call("PUT /plants/1", 200, { name: "Fern" }, headers);
    await call("PATCH /plants/1", 200, { name: "Fern" }, headers);
    await call("DELETE /plants/1", 204, undefined, headers);

    expect(await list()).toEqual([]);
  });

  test.each([
    { what: "its weak ETag", condition: (etag: string) => `W/${etag}` },
    { what: "another ETag", condition: () => '"other"' },
    { what: "another weak ETag", condition: () => 'W/"other"' },
    { what: "an empty ETag", condition: () => '""' },
  ])("If-Match with $what makes every method a 412", async ({ condition }) => {
    await grow("Fern");
    const headers = { "If-Match": condition(await readEtag()) };

    await call("GET /plants/1", 412, undefined, headers);
    await call("HEAD /plants/1", 412, undefined, headers);
    await call("PUT /plants/1", 412, { name: "Ivy" }, headers);
    await call("PATCH /plants/1", 412, { name: "Ivy" }, headers);
    await call("DELETE /plants/1", 412, undefined, headers);
    // Even if they would change nothing.
    await call("PUT /plants/1", 412, { name: "Fern" }, headers);
    await call("PATCH /plants/1", 412, { name: "Fern" }, headers);

    await expectUnchanged();
  });

  test.each([
    { what: "the plant's ETag", condition: (etag: string) => etag },
    { what: "its weak ETag", condition: (etag: string) => `W/${etag}` },
    { what: "a list with its ETag", condition: (etag: string) => `"other", ${etag}` },
    { what: "*", condition: () => "*" },
  ])("If-None-Match with $what makes a read a 304", async ({ condition }) => {
    await grow("Fern");
    const etag = await readEtag();
    const headers = { "If-None-Match": condition(etag) };

    const get = await call("GET /plants/1", 304, undefined, headers);
    await call("HEAD /plants/1", 304, undefined, headers);

    expect(get.headers.get("ETag")).toBe(etag);
  });

  test("If-None-Match with another ETag lets a read pass", async () => {
    await grow("Fern");
    await call("GET /plants/1", 200, undefined, { "If-None-Match": '"other"' });
  });

  test.each([
    { what: "another ETag", condition: '"other"' },
    { what: "other ETags, strong and weak", condition: 'W/"other", "another"' },
  ])("If-None-Match with $what lets every write pass", async ({ condition }) => {
    await grow("Fern");
    const headers = { "If-None-Match": condition };

    await call("PUT /plants/1", 200, { name: "Fern" }, headers);
    await call("PATCH /plants/1", 200, { name: "Fern" }, headers);
    await call("DELETE /plants/1", 204, undefined, headers);

    expect(await list()).toEqual([]);
  });

  test.each([
    { what: "the plant's ETag", condition: (etag: string) => etag },
    { what: "its weak ETag", condition: (etag: string) => `W/${etag}` },
    { what: "a list with its ETag", condition: (etag: string) => `"other", ${etag}` },
    { what: "*", condition: () => "*" },
  ])("If-None-Match with $what makes every write a 412", async ({ condition }) => {
    await grow("Fern");
    const headers = { "If-None-Match": condition(await readEtag()) };

    await call("PUT /plants/1", 412, { name: "Ivy" }, headers);
    await call("PATCH /plants/1", 412, { name: "Ivy" }, headers);
    await call("DELETE /plants/1", 412, undefined, headers);
    // Even if they would change nothing.
    await call("PUT /plants/1", 412, { name: "Fern" }, headers);
    await call("PATCH /plants/1", 412, { name: "Fern" }, headers);

    await expectUnchanged();
  });

  describe("if both headers are sent,", () => {
    test("a read looks at If-Match first", async () => {
      await grow("Fern");
      const etag = await readEtag();

      const neither = { "If-Match": '"other"', "If-None-Match": etag };
      const onlyIfMatch = { "If-Match": etag, "If-None-Match": etag };
      const both = { "If-Match": etag, "If-None-Match": '"other"' };
      await call("GET /plants/1", 412, undefined, neither);
      await call("GET /plants/1", 304, undefined, onlyIfMatch);
      await call("GET /plants/1", 200, undefined, both);
    });

    test("a write is a 412 unless both are met", async () => {
      await grow("Fern");
      const etag = await readEtag();

      const onlyIfMatch = { "If-Match": etag, "If-None-Match": etag };
      const onlyIfMatchByStars = { "If-Match": "*", "If-None-Match": "*" };
      const onlyIfNoneMatch = { "If-Match": '"other"', "If-None-Match": '"other"' };
      await call("PUT /plants/1", 412, { name: "Ivy" }, onlyIfMatch);
      await call("PATCH /plants/1", 412, { name: "Ivy" }, onlyIfMatchByStars);
      await call("DELETE /plants/1", 412, undefined, onlyIfNoneMatch);
      await expectUnchanged();

      const both = { "If-Match": etag, "If-None-Match": '"other"' };
      await call("PUT /plants/1", 200, { name: "Ivy" }, both);
    });
  });

  describe("if the plant doesn't exist,", () => {
    test("reads, patches and deletes without a condition are a 404", async () => {
      await grow("Fern");

      await call("GET /plants/2", 404);
      await call("HEAD /plants/2", 404);
      await call("PATCH /plants/2", 404, { tag: "x" });
      await call("DELETE /plants/2", 404);

      await expectUnchanged();
    });

    describe.each(["If-Match", "If-None-Match"])("%s", (header) => {
      test.each(["*", '"x"', 'W/"x"'])(
        "with %s leaves reads, patches and deletes a 404",
        async (condition) => {
          await grow("Fern");
          const headers = { [header]: condition };

          await call("GET /plants/2", 404, undefined, headers);
          await call("HEAD /plants/2", 404, undefined, headers);
          await call("PATCH /plants/2", 404, { name: "Ivy" }, headers);
          await call("DELETE /plants/2", 404, undefined, headers);

          await expectUnchanged();
        },
      );
    });

    test.each(["*", '"x"', 'W/"x"'])("a put with If-Match: %s is a 412", async (condition) => {
      await grow("Fern");
      await call("PUT /plants/2", 412, { name: "Ivy" }, { "If-Match": condition });
      await expectUnchanged();
    });

    test.each(["*", '"x"', 'W/"x"'])(
      "a put with If-None-Match: %s creates it",
      async (condition) => {
        await call("PUT /plants/1", 201, { name: "Fern" }, { "If-None-Match": condition });
        expect(await list()).toEqual(["Fern"]);
      },
    );
  });

  describe.each([
    { request: "POST /plants", body: { name: "Ivy" } },
    { request: "POST /plants/bulk", body: [{ name: "Ivy" }] },
    { request: "POST /plants/bulk-update", body: { ids: [1], set: { name: "Ivy" } } },
    { request: "POST /plants/bulk-delete", body: { ids: [1] } },
  ])("since $request has no ETag,", ({ request, body }) => {
    test.each(['"nope"', 'W/"nope"', '"a", "b"'])(
      "If-Match with %s is a 412 that changes nothing",
      async (condition) => {
        await grow("Fern");
        const { json } = await call(request, 412, body, { "If-Match": condition });

        expect(json.detail).toContain("Nothing was changed");
        await expectUnchanged();
      },
    );

    test("If-Match with a plant's ETag is a 412 that changes nothing", async () => {
      await grow("Fern");
      const { json } = await call(request, 412, body, { "If-Match": await readEtag() });

      expect(json.detail).toContain("Nothing was changed");
      await expectUnchanged();
    });

    test("a malformed If-Match is a 400", async () => {
      await grow("Fern");
      const { errors } = await call(request, 400, body, { "If-Match": "nope" });

      expect(errors).toEqual(["If-Match"]);
      await expectUnchanged();
    });

    test("an invalid body is a 400, whatever If-Match has", async () => {
      await grow("Fern");
      const { errors } = await call(request, 400, "{", { "If-Match": '"nope"' });

      expect(errors).toEqual([""]);
      await expectUnchanged();
    });
  });

  test("a create ignores stars and If-None-Match", async () => {
    await call("POST /plants", 201, { name: "Ivy" }, { "If-Match": "*", "If-None-Match": "*" });
    await call("POST /plants", 201, { name: "Ivy" }, { "If-None-Match": '"nope"' });
    expect(await list()).toEqual(["Ivy", "Ivy"]);
  });

  describe.each([{ "If-Match": '"nope"' }, { "If-None-Match": "*" }])("%j", (headers) => {
    test.each(["/plants", "/plants?limit=1", "/tags", "/events", "/me"])(
      "is ignored by a read of %s",
      async (path) => {
        await grow("Fern");
        await call(`GET ${path}`, 200, undefined, headers);
        await call(`HEAD ${path}`, 200, undefined, headers);
      },
    );

    test("is ignored by OPTIONS", async () => {
      await grow("Fern");
      await call("OPTIONS /plants", 204, undefined, headers);
      await call("OPTIONS /plants/1", 204, undefined, headers);
    });
  });

  test("of six puts at once with the same ETag, one passes", async () => {
    await call("PUT /plants/1", 201, { name: "Fern" }, { "If-None-Match": "*" });
    const headers = { "If-Match": await readEtag() };

    const statuses = await atOnce(6, "PUT /plants/1", { name: "Ivy" }, headers);

    expect(statuses).toEqual([200, 412, 412, 412, 412, 412]);
  });
});
