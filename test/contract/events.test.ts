/** Events: what is one, pages and streams of them, and when they can't go on. */
import { describe, expect, test } from "bun:test";
import { openStorage } from "../../src/storage/open.ts";
import type { EventStreamReader } from "../../testing/event-reader.ts";
import { create, put } from "../../testing/tested-storage.ts";
import { bearer, onEachEngine, openGarden } from "./garden.ts";

const stream = { Accept: "text/event-stream" };
/** What `Accept` gets; the first of each list is what it is in. */
const preferences: Readonly<Record<"stream" | "list", readonly (string | null)[]>> = {
  stream: [
    "text/event-stream",
    "TEXT/Event-Stream; charset=utf-8",
    "text/event-stream, application/json",
    "text/event-stream, */*",
    "text/html, text/event-stream",
    "application/json;q=0.1, text/event-stream;q=0.9",
    "*/*;q=0.5, text/event-stream",
    "text/event-stream;q=0.5",
    "application/json;q=0, */*",
    "text/*",
    "text/*;q=0.2, application/*;q=0.1",
  ],
  list: [
    null,
    "",
    "*/*",
    "text/html",
    "application/json",
    "application/json, text/event-stream",
    "application/json, text/event-stream;q=0.5",
    "text/event-stream;q=0.1, application/json;q=0.9",
    "text/event-stream;q=0",
    "text/event-stream;q=0, */*",
    "*/*, text/event-stream;q=0",
    "*/*, text/event-stream",
    "text/*;q=0.5, */*",
    "text/event-stream-2",
    "application/json;q=0.5, text/event-stream;q=0.50",
  ],
};
const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);
const from = (after: number) => ({ "Last-Event-ID": String(after) });
const ids = (events: readonly { id: number }[]) => events.map(({ id }) => id);

onEachEngine((garden) => {
  const { call, reader, plant, fetch, walk, listen, service } = garden;
  const grow = (count: number, name = "Fern") =>
    plant(Array.from({ length: count }, () => ({ name })));
  const seqs = async (query: string) =>
    (await call(`GET /events?${query}`, 200)).json.map(({ seq }: { seq: number }) => seq);

  test("creates, replacements and deletions are events, in order, and what changes nothing is none", async () => {
    const key = { "Idempotency-Key": "k" };
    const fern = { name: "Fern", tag: "shade", id: 1 };
    await call("POST /plants", 201, fern, key);
    await call("POST /plants", 201, fern, key);
    await call("POST /plants", 409, fern);
    await call("PUT /plants/1", 200, fern);
    await call("PUT /plants/1", 412, { name: "Ivy" }, { "If-None-Match": "*" });
    await call("DELETE /plants/2", 404);
    await call("PUT /plants/1", 200, { name: "Ivy" });
    for (const _ of "12") await call("PATCH /plants/1", 200, { tag: "hall" });
    await call("DELETE /plants/1", 204);
    await call("PUT /plants/2", 201, { name: "Moss" });
    await call("POST /plants/bulk", 200, Array(2).fill({ name: "Rue", id: 3 }));
    await call("POST /plants/bulk-delete", 200, { ids: [2, 9] });
    const { json, next } = await call("GET /events", 200);
    expect(next).toBeUndefined();
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/);
    const event = (seq: number, type: string, id: number, name: string, tag = "") => ({
      ...{ seq, type: `plant.${type}`, at, user: "ann", plant: { id, name, tag } },
    });
    expect(json).toEqual([
      event(1, "created", 1, "Fern", "shade"),
      event(2, "replaced", 1, "Ivy"),
      event(3, "replaced", 1, "Ivy", "hall"),
      event(4, "deleted", 1, "Ivy", "hall"),
      event(5, "created", 2, "Moss"),
      event(6, "created", 3, "Rue"),
      event(7, "deleted", 2, "Moss"),
    ]);
  });

  test("a page has up to limit events, 100 by default, and the links visit each exactly once", async () => {
    await grow(430, "x".repeat(200));
    expect(await seqs("")).toEqual(range(1, 100));
    expect(await seqs("after=128&limit=2")).toEqual([129, 130]);
    const pages = await walk("/events?limit=1000");
    expect(pages.flat().map(({ seq }) => seq)).toEqual(range(1, 430));
    expect((await reader("HEAD /events?limit=1", 200)).next).toBe("/events?limit=1&after=1");
    expect(await seqs("after=430")).toEqual([]);
  });

  test.each(Object.entries(preferences))(
    "what Accept prefers, or names first, is a %s, and Vary says that it counts",
    async (kind, accepted) => {
      const type = kind === "stream" ? "text/event-stream" : "application/json";
      for (const Accept of accepted) {
        const { headers } = await call("GET /events", 200, undefined, { Accept });
        expect([Accept, headers.get("Content-Type")]).toEqual([Accept, type]);
        expect(headers.get("Vary")?.split(", ")).toContain("Accept");
      }
    },
  );

  test("a stream sends events as they happen, with who did what", async () => {
    await grow(2);
    const bob = await service.makeToken({ user: "bob", garden: garden.name });
    const events = await listen();
    await call("POST /plants", 201, { name: "Ivy" }, bearer(bob));
    await call("DELETE /plants/3", 204);
    const [created, deleted] = await events.take(2);
    expect(created).toMatchObject({ id: 3, type: "plant.created", data: { seq: 3, user: "bob" } });
    const data = { user: "ann", plant: { id: 3, name: "Ivy", tag: "" } };
    expect(deleted).toMatchObject({ id: 4, type: "plant.deleted", data });
    await events.close();
  });

  test("a stream begins with its position: after, or Last-Event-ID, which goes before it", async () => {
    await grow(3);
    for (const [query, position] of [
      ["after=2", null],
      ["after=99", "2"],
    ] as const) {
      const headers = { ...stream, "Last-Event-ID": position };
      let text = "";
      for await (const bytes of (await fetch(`GET /events?${query}`, undefined, headers)).body ??
        []) {
        text += new TextDecoder().decode(bytes);
        if (text.endsWith("}}\n\n")) break;
      }
      expect(text).toMatch(
        /^retry: 2000\nid: 2\n\nid: 3\nevent: plant\.created\ndata: \{"seq":3,.*\}\}\n\n$/,
      );
    }
  });

  test("streams go on from storage and then live, each event once and in order", async () => {
    await grow(1_500);
    const starts = [0, 3, 1_499, 1_500, 1_650];
    const readers = await Promise.all(starts.slice(0, -1).map((after) => listen(from(after))));
    await call("POST /plants/bulk", 200, Array(300).fill({ name: "Ivy" }));
    readers.push(await listen(from(1_650)));
    for (const [index, after] of starts.entries()) {
      const seen = await readers[index]?.take(1_800 - after);
      expect(ids(seen ?? [])).toEqual(range(after + 1, 1_800));
      await readers[index]?.close();
    }
  });

  test("events that are no longer kept, or never were, are 410, for a page and for a stream", async () => {
    await grow(3);
    let next: string | undefined = "";
    while (next !== undefined) next = await service.storage.forgetEvents(1, next);
    for (const headers of [{}, stream]) {
      for (const after of [2, 4, Number.MAX_SAFE_INTEGER]) {
        await call(`GET /events?after=${after}`, 410, undefined, headers);
      }
    }
    expect([await seqs("after=3"), await seqs("")]).toEqual([[], []]);
    expect((await call("GET /me", 200)).json.lastEvent).toBe(3);
  });

  test("there is no silent gap where events were off for a while", async () => {
    await grow(3);
    const off = await openStorage(service.database, { isServing: false, withoutEvents: true });
    for (const write of [create(), put()]) await off.apply([{ ...write, garden: garden.name }]);
    await off.close();
    await grow(1);
    expect([await seqs(""), await seqs("after=5")]).toEqual([[1, 2, 3], [6]]);
    await call("GET /events?after=3", 410);
  });

  test("a stream ends for a listener that falls more than 256 KiB behind, and it resumes", async () => {
    const [slow, other] = [await listen(), await listen()];
    const seenByOther = other.take(900);
    const long = { name: "x".repeat(200), tag: "y".repeat(100) };
    await call("POST /plants/bulk", 200, Array(900).fill(long));
    expect(ids(await seenByOther)).toEqual(range(1, 900));
    const seen = ids(await slow.take(900));
    expect(seen.length).toBeLessThan(700);
    const last = seen.at(-1) ?? 0;
    const resumed = await listen(from(last));
    expect(ids(await resumed.take(900 - last))).toEqual(range(last + 1, 900));
    await Promise.all([other.close(), resumed.close()]);
  });

  test("a stream ends with its token, and only with that", async () => {
    const other = await service.makeToken({ user: "ann", garden: garden.name });
    const staying = await listen(bearer(other));
    const ending = await listen();
    await service.revoke(await garden.token());
    expect(await ending.next()).toBeUndefined();
    await grow(1);
    expect(await staying.next()).toMatchObject({ id: 1 });
    await staying.close();
  });

  test("a token has 64 streams, and one more when one is closed; HEAD opens none", async () => {
    const readers: EventStreamReader[] = [];
    // One after the other: at once, they would be a load for a busy PostgreSQL.
    while (readers.length < 64) readers.push(await listen());
    const refused = await call("GET /events", 429, undefined, stream);
    expect(refused.headers.get("Retry-After")).toBe("1");
    await readers[0]?.close();
    readers.push(await listen());
    await Promise.all(readers.map((each) => each.close()));
    const { feed } = service.parts;
    // The service learns of it some ticks later.
    for (let waits = 0; feed.listeners > 0 && waits < 100; waits++) await Bun.sleep(50);
    expect(feed.listeners).toBe(0);
    await call("HEAD /events", 200, undefined, stream);
    expect(feed.listeners).toBe(0);
  });
});

describe("a service without events", () => {
  const { call } = openGarden("SQLite", { events: "off" });

  test("has none, says why, and shows no lastEvent", async () => {
    await call("POST /plants", 201, { name: "Fern" });
    for (const headers of [{}, stream]) {
      const { json } = await call("GET /events", 404, undefined, headers);
      expect(json.detail).toContain("PLANTSTORE_EVENTS");
    }
    expect((await call("GET /me", 200)).json).not.toHaveProperty("lastEvent");
  });
});
