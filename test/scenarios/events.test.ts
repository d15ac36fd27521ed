/** Events through the whole service: pages that end, streams that go on, and when they don't. */
import { describe, expect, test } from "bun:test";
import { openStorage } from "../../src/storage/open.ts";
import { insist, waitFor } from "../end-to-end/running-service.ts";
import { EventStreamReader } from "../event-reader.ts";
import { create } from "../storage/tested-storage.ts";
import { engines, openWorld, type World } from "./scenario.ts";

const stream = { accept: "text/event-stream" };

async function listen(world: World, token: string, after?: number): Promise<EventStreamReader> {
  const resuming = after === undefined ? {} : { "last-event-id": String(after) };
  const headers = { ...stream, ...resuming };
  const response = await insist(() => world.call(token, "GET /events", undefined, headers));
  expect([response.status, response.headers.get("x-accel-buffering")]).toEqual([200, "no"]);
  return new EventStreamReader(response);
}

const ids = (events: readonly { id: number }[]) => events.map(({ id }) => id);
const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe.each(engines)("events on %s", (engine) => {
  const world = openWorld(engine);

  async function makeGarden(garden: string, plants: number): Promise<string> {
    await world.storage.apply(Array.from({ length: plants }, () => create({ garden })));
    return world.makeToken({ user: "ann", garden });
  }

  async function forget(beforeMs: number): Promise<void> {
    let garden: string | undefined = "";
    while (garden !== undefined) garden = await world.storage.forgetEvents(beforeMs, garden);
  }

  test("come to a listener as they happen, with who did what", async () => {
    const token = await makeGarden("live", 2);
    const bob = await world.makeToken({ user: "bob", garden: "live" });
    const reader = await listen(world, token);
    await world.call(bob, "POST /plants", { name: "Fern" });
    await world.call(token, "DELETE /plants/3");
    const [created, deleted] = await reader.take(2);
    expect(created).toMatchObject({ id: 3, type: "plant.created", data: { seq: 3, user: "bob" } });
    const plant = { id: 3, name: "Fern", tag: "" };
    expect(deleted).toMatchObject({ id: 4, type: "plant.deleted", data: { user: "ann", plant } });
    expect(reader.others).toEqual(["retry: 2000"]);
    await reader.close();
  });

  test("go on after a number, from storage and then live, each once and in order", async () => {
    const token = await makeGarden("resumed", 1_500);
    const readers = await Promise.all([0, 3, 1_499, 1_500].map((n) => listen(world, token, n)));
    const more = Array.from({ length: 300 }, (_, index) => ({ name: `Plant ${index}` }));
    await world.call(token, "POST /plants/bulk", more);
    const late = await listen(world, token, 1_650);
    for (const [index, after] of [0, 3, 1_499, 1_500].entries()) {
      const seen = ids((await readers[index]?.take(1_800 - after)) ?? []);
      expect(seen).toEqual(range(after + 1, 1_800));
    }
    expect(ids(await late.take(150))).toEqual(range(1_651, 1_800));
    await Promise.all([...readers, late].map((reader) => reader.close()));
  });

  test("are visited exactly once by whoever follows the links", async () => {
    const token = await makeGarden("pages", 130);
    const long = Array.from({ length: 300 }, () =>
      create({ garden: "pages", name: "x".repeat(200) }),
    );
    await world.storage.apply(long);
    const seen: number[] = [];
    let target: string | undefined = "/events?limit=1000";
    while (target) {
      const response: Response = await world.call(token, `GET ${target}`);
      seen.push(...(await response.json()).map(({ seq }: { seq: number }) => seq));
      target = /<(.+)>; rel="next"/.exec(response.headers.get("link") ?? "")?.[1];
    }
    expect(seen).toEqual(range(1, 430));
  });

  test("that are no longer kept are 410, for a page and for a stream", async () => {
    const token = await makeGarden("old", 3);
    await forget(1);
    const statusOf = async (query: string, headers = {}) =>
      (await world.call(token, `GET /events${query}`, undefined, headers)).status;
    expect([await statusOf("?after=2"), await statusOf("?after=2", stream)]).toEqual([410, 410]);
    expect([await statusOf("?after=3"), await statusOf("")]).toEqual([200, 200]);
    const me = await (await world.call(token, "GET /me")).json();
    expect(me.lastEvent).toBe(3);
  });

  test("have no silent gap where they were off for a while", async () => {
    const token = await makeGarden("gap", 3);
    const seqs = async (query: string) => {
      const response = await world.call(token, `GET /events?${query}`);
      const body = await response.json();
      return response.ok ? body.map(({ seq }: { seq: number }) => seq) : response.status;
    };
    const off = await openStorage(world.database, { isServing: false, withoutEvents: true });
    await off.apply([create({ garden: "gap" })]);
    await off.close();
    await world.storage.apply([create({ garden: "gap" })]);
    expect([await seqs(""), await seqs("after=3"), await seqs("after=4")]).toEqual([
      ...[[1, 2, 3], 410, [5]],
    ]);
  });

  test("end for a listener that falls more than 256 KiB behind, and it resumes", async () => {
    const token = await makeGarden("slow", 1);
    const reader = await listen(world, token);
    const other = await listen(world, token);
    const seenByOther = other.take(900);
    const body = Array.from({ length: 900 }, () => ({
      name: "x".repeat(200),
      tag: "y".repeat(100),
    }));
    await world.call(token, "POST /plants/bulk", body);
    expect(ids(await seenByOther)).toEqual(range(2, 901));
    const seen = ids(await reader.take(900));
    expect(seen.length).toBeLessThan(700);
    const last = seen.at(-1) ?? 1;
    const resumed = await listen(world, token, last);
    expect(ids(await resumed.take(901 - last))).toEqual(range(last + 1, 901));
    await Promise.all([other.close(), resumed.close()]);
  });

  test("end with the token, and only for that token", async () => {
    const token = await makeGarden("revoked", 1);
    const { id = "" } = (await world.storage.listTokens()).at(-1) ?? {};
    const staying = await listen(world, await world.makeToken({ user: "ann", garden: "revoked" }));
    const readers = await Promise.all([listen(world, token), listen(world, token)]);
    await world.storage.revokeToken(id, Date.now());
    await world.assembly.authenticator.refresh();
    for (const reader of readers) expect(await reader.next()).toBeUndefined();
    await world.storage.apply([create({ garden: "revoked" })]);
    expect(await staying.next()).toMatchObject({ id: 2 });
    await staying.close();
  });

  test("have 64 streams for a token, and one more when one is closed", async () => {
    const token = await makeGarden("many", 1);
    const readers = await Promise.all(Array.from({ length: 64 }, () => listen(world, token)));
    const open = () => world.call(token, "GET /events", undefined, stream);
    const refused = await open();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
    await readers[0]?.close();
    const again = new EventStreamReader(await open());
    await Promise.all([...readers, again].map((reader) => reader.close()));
    await waitFor(() => (world.assembly.feed.listeners === 0 ? true : undefined));
    expect((await world.call(token, "HEAD /events", undefined, stream)).status).toBe(200);
    expect(world.assembly.feed.listeners).toBe(0);
  });

  test("end at once when the service stops", async () => {
    const reader = await listen(world, await makeGarden("stop", 1));
    world.assembly.feed.close();
    expect(await reader.next()).toBeUndefined();
    const late = await listen(world, await world.makeToken({ user: "ann", garden: "stop" }));
    expect(await late.next()).toBeUndefined();
  });
});

describe("a service without events", () => {
  const world = openWorld("SQLite", { events: "off" });

  test("has none, says why, and shows no lastEvent", async () => {
    const token = await world.makeToken({ user: "ann" });
    await world.call(token, "POST /plants", { name: "Fern" });
    for (const headers of [{}, stream]) {
      const response = await world.call(token, "GET /events", undefined, headers);
      expect(response.status).toBe(404);
      expect((await response.json()).detail).toContain("PLANTSTORE_EVENTS");
    }
    expect(await (await world.call(token, "GET /me")).json()).not.toHaveProperty("lastEvent");
    expect(await world.storage.readEvents("ann", undefined, 9, 99)).toEqual({
      events: [],
      lastEvent: 1,
    });
  });
});
