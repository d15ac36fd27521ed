/** Events: what is one, pages of them, who gets a stream, and when they can't go on. */
import { describe, expect, test } from "bun:test";
import { openStorage } from "../../src/storage/open.ts";
import { create, put } from "../../testing/tested-storage.ts";
import { onEachEngine, openGarden } from "./garden.ts";

const asStream = { Accept: "text/event-stream" };

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

onEachEngine((garden) => {
  const { call, reader, plant, walk, service } = garden;

  /** Stores plants with this name. The creation of each is an event. */
  async function storePlants(count: number, name = "Fern"): Promise<void> {
    await plant(Array.from({ length: count }, () => ({ name })));
  }

  async function listSeqs(query = ""): Promise<number[]> {
    const { json } = await call(`GET /events?${query}`, 200);
    return json.map(({ seq }: { seq: number }) => seq);
  }

  /** Forgets the events of `storePlants`. Their time is 1970. */
  async function forgetStoredEvents(): Promise<void> {
    let nextGarden: string | undefined = "";
    while (nextGarden !== undefined) {
      nextGarden = await service.storage.forgetEvents(1, nextGarden);
    }
  }

  describe("an event", () => {
    test("says who created a plant, and when", async () => {
      await call("POST /plants", 201, { name: "Fern", tag: "shade", id: 1 });

      expect((await call("GET /events", 200)).json).toEqual([
        {
          seq: 1,
          type: "plant.created",
          at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/),
          user: "ann",
          plant: { id: 1, name: "Fern", tag: "shade" },
        },
      ]);
    });

    test("of a PUT is plant.created if the plant is new", async () => {
      await call("PUT /plants/2", 201, { name: "Moss" });

      expect((await call("GET /events", 200)).json).toEqual([
        {
          seq: 1,
          type: "plant.created",
          at: expect.any(String),
          user: "ann",
          plant: { id: 2, name: "Moss", tag: "" },
        },
      ]);
    });

    test("of a PUT is plant.replaced if there was a plant, with the new one", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);

      await call("PUT /plants/1", 200, { name: "Ivy" });

      expect((await call("GET /events?after=1", 200)).json).toEqual([
        {
          seq: 2,
          type: "plant.replaced",
          at: expect.any(String),
          user: "ann",
          plant: { id: 1, name: "Ivy", tag: "" },
        },
      ]);
    });

    test("of a PATCH is plant.replaced, with the whole plant", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);

      await call("PATCH /plants/1", 200, { tag: "hall" });

      expect((await call("GET /events?after=1", 200)).json).toEqual([
        {
          seq: 2,
          type: "plant.replaced",
          at: expect.any(String),
          user: "ann",
          plant: { id: 1, name: "Fern", tag: "hall" },
        },
      ]);
    });

    test("of a DELETE is plant.deleted, with the plant as it was", async () => {
      await plant([{ id: 1n, name: "Fern", tag: "shade" }]);

      await call("DELETE /plants/1", 204);

      expect((await call("GET /events?after=1", 200)).json).toEqual([
        {
          seq: 2,
          type: "plant.deleted",
          at: expect.any(String),
          user: "ann",
          plant: { id: 1, name: "Fern", tag: "shade" },
        },
      ]);
    });

    test("is there for each plant that a bulk creates", async () => {
      await call("POST /plants/bulk", 200, [{ name: "Rue" }, { name: "Moss" }]);

      expect((await call("GET /events", 200)).json).toMatchObject([
        { seq: 1, type: "plant.created", user: "ann", plant: { id: 1, name: "Rue", tag: "" } },
        { seq: 2, type: "plant.created", user: "ann", plant: { id: 2, name: "Moss", tag: "" } },
      ]);
    });

    test("is there for each plant that a bulk deletes", async () => {
      await plant([{ name: "Rue" }, { name: "Moss" }]);

      await call("POST /plants/bulk-delete", 200, { ids: [1, 2] });

      expect((await call("GET /events?after=2", 200)).json).toMatchObject([
        { seq: 3, type: "plant.deleted", user: "ann", plant: { id: 1, name: "Rue", tag: "" } },
        { seq: 4, type: "plant.deleted", user: "ann", plant: { id: 2, name: "Moss", tag: "" } },
      ]);
    });

    test("has the next number, in the order of the changes, whatever they were", async () => {
      await call("POST /plants", 201, { name: "Fern", id: 1 });
      await call("PUT /plants/1", 200, { name: "Ivy" });
      await call("PATCH /plants/1", 200, { tag: "hall" });
      await call("DELETE /plants/1", 204);
      await call("PUT /plants/2", 201, { name: "Moss" });
      await call("POST /plants/bulk", 200, [{ name: "Rue", id: 3 }]);
      await call("POST /plants/bulk-delete", 200, { ids: [2] });

      const { json, next } = await call("GET /events", 200);

      expect(json).toMatchObject([
        { seq: 1, type: "plant.created", plant: { id: 1, name: "Fern", tag: "" } },
        { seq: 2, type: "plant.replaced", plant: { id: 1, name: "Ivy", tag: "" } },
        { seq: 3, type: "plant.replaced", plant: { id: 1, name: "Ivy", tag: "hall" } },
        { seq: 4, type: "plant.deleted", plant: { id: 1, name: "Ivy", tag: "hall" } },
        { seq: 5, type: "plant.created", plant: { id: 2, name: "Moss", tag: "" } },
        { seq: 6, type: "plant.created", plant: { id: 3, name: "Rue", tag: "" } },
        { seq: 7, type: "plant.deleted", plant: { id: 2, name: "Moss", tag: "" } },
      ]);
      expect(next).toBeUndefined();
    });
  });

  describe("there is no event of", () => {
    test("a create that is replayed", async () => {
      const key = { "Idempotency-Key": "k" };
      await call("POST /plants", 201, { name: "Fern" }, key);

      await call("POST /plants", 201, { name: "Fern" }, key);

      expect(await listSeqs()).toEqual([1]);
    });

    test("a create whose id is taken", async () => {
      await call("POST /plants", 201, { name: "Fern", id: 1 });

      await call("POST /plants", 409, { name: "Fern", id: 1 });

      expect(await listSeqs()).toEqual([1]);
    });

    test("a plant that a bulk refuses", async () => {
      const rue = { name: "Rue", id: 3 };

      await call("POST /plants/bulk", 200, [rue, rue]);

      expect(await listSeqs()).toEqual([1]);
    });

    test("a PUT of the plant that is already there", async () => {
      await call("PUT /plants/1", 201, { name: "Fern", tag: "shade" });

      await call("PUT /plants/1", 200, { name: "Fern", tag: "shade" });

      expect(await listSeqs()).toEqual([1]);
    });

    test("a PUT whose condition isn't met", async () => {
      await call("PUT /plants/1", 201, { name: "Fern" });

      await call("PUT /plants/1", 412, { name: "Ivy" }, { "If-None-Match": "*" });

      expect(await listSeqs()).toEqual([1]);
    });

    test("a PATCH to what the plant already is", async () => {
      await call("PUT /plants/1", 201, { name: "Fern", tag: "hall" });

      await call("PATCH /plants/1", 200, { tag: "hall" });

      expect(await listSeqs()).toEqual([1]);
    });

    test("a DELETE of a plant that doesn't exist", async () => {
      await call("DELETE /plants/2", 404);

      expect(await listSeqs()).toEqual([]);
    });

    test("a missing plant in a bulk delete", async () => {
      await call("PUT /plants/2", 201, { name: "Moss" });

      await call("POST /plants/bulk-delete", 200, { ids: [2, 9] });

      expect(await listSeqs()).toEqual([1, 2]);
    });
  });

  describe("a page of events", () => {
    test("has 100 of them by default", async () => {
      await storePlants(101);

      expect(await listSeqs()).toEqual(range(1, 100));
    });

    test("has up to limit of those after a seq", async () => {
      await storePlants(131);

      expect(await listSeqs("after=128&limit=2")).toEqual([129, 130]);
    });

    test("is empty after the last event", async () => {
      await storePlants(3);

      expect(await listSeqs("after=3")).toEqual([]);
    });

    test("links to the next one, so that each event is visited exactly once", async () => {
      // Long names, so that a page ends before its limit.
      await storePlants(430, "x".repeat(200));

      const pages = await walk("/events?limit=1000");

      expect(pages.flat().map(({ seq }) => seq)).toEqual(range(1, 430));
    });

    test("needs a token to read only, and HEAD has its Link", async () => {
      await storePlants(2);

      const { next } = await reader("HEAD /events?limit=1", 200);

      expect(next).toBe("/events?limit=1&after=1");
    });
  });

  describe("Accept gets the stream", () => {
    test.each([
      "text/event-stream",
      "TEXT/Event-Stream; charset=utf-8",
      "text/event-stream, application/json",
      "text/event-stream, */*",
      "text/html, text/event-stream",
      "application/json;q=0.1, text/event-stream;q=0.9",
      "*/*;q=0.5, text/event-stream",
      "text/event-stream;q=0.5",
      "application/json;q=0, */*",
      // A range is as good as a name.
      "text/*",
      "text/*;q=0.2, application/*;q=0.1",
    ])("with %s", async (accept) => {
      const { headers } = await call("GET /events", 200, undefined, { Accept: accept });

      expect(headers.get("Content-Type")).toBe("text/event-stream");
      expect(headers.get("Vary")?.split(", ")).toContain("Accept");
    });
  });

  describe("Accept gets the list", () => {
    test.each([
      "*/*",
      "text/html",
      "application/json",
      "application/json, text/event-stream",
      "application/json, text/event-stream;q=0.5",
      "text/event-stream;q=0.1, application/json;q=0.9",
      "text/event-stream;q=0",
      // A name counts before a range that includes it.
      "text/event-stream;q=0, */*",
      "*/*, text/event-stream;q=0",
      "*/*, text/event-stream",
      "text/*;q=0.5, */*",
      "text/event-stream-2",
      "application/json;q=0.5, text/event-stream;q=0.50",
    ])("with %s", async (accept) => {
      const { headers } = await call("GET /events", 200, undefined, { Accept: accept });

      expect(headers.get("Content-Type")).toBe("application/json");
      expect(headers.get("Vary")?.split(", ")).toContain("Accept");
    });

    test.each([
      ["if it is missing", null],
      ["if it is empty", ""],
    ])("%s", async (_, accept) => {
      const { headers } = await call("GET /events", 200, undefined, { Accept: accept });

      expect(headers.get("Content-Type")).toBe("application/json");
      expect(headers.get("Vary")?.split(", ")).toContain("Accept");
    });
  });

  describe("a list and a stream are a 410", () => {
    test.each([
      { what: "if the next events are no longer kept", after: 2 },
      { what: "after an event that never was", after: 4 },
      { what: "after the highest number of an event", after: Number.MAX_SAFE_INTEGER },
    ])("$what", async ({ after }) => {
      await storePlants(3);
      await forgetStoredEvents();

      await call(`GET /events?after=${after}`, 410);
      await call(`GET /events?after=${after}`, 410, undefined, asStream);
    });
  });

  test("a list never passes silently over a time when events were off", async () => {
    await storePlants(3);
    const off = await openStorage(service.database, { isServing: false, withoutEvents: true });
    await off.apply([create({ garden: garden.name })]);
    await off.apply([put({ garden: garden.name })]);
    await off.close();
    await storePlants(1);

    expect(await listSeqs()).toEqual([1, 2, 3]);
    await call("GET /events?after=3", 410);
    expect(await listSeqs("after=5")).toEqual([6]);
  });

  describe("once all events are forgotten", () => {
    test("a list is empty, from its start or after the last event", async () => {
      await storePlants(3);
      await forgetStoredEvents();

      expect(await listSeqs()).toEqual([]);
      expect(await listSeqs("after=3")).toEqual([]);
    });

    test("/me still has the number of the last event", async () => {
      await storePlants(3);
      await forgetStoredEvents();

      expect((await call("GET /me", 200)).json.lastEvent).toBe(3);
    });
  });
});

describe("a service without events", () => {
  const { call } = openGarden("SQLite", { events: "off" });

  test.each([
    ["a list", {}],
    ["a stream", asStream],
  ])("refuses %s, and says how to get them", async (_, headers) => {
    await call("POST /plants", 201, { name: "Fern" });

    const { json } = await call("GET /events", 404, undefined, headers);

    expect(json.detail).toContain("PLANTSTORE_EVENTS");
  });

  test("shows no lastEvent", async () => {
    await call("POST /plants", 201, { name: "Fern" });

    expect((await call("GET /me", 200)).json).not.toHaveProperty("lastEvent");
  });
});
