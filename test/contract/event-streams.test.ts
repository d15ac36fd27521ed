/** Streams of events: what they send, how they go on, and when they end. */
import { describe, expect, test } from "bun:test";
import type { EventStreamReader } from "../../testing/event-reader.ts";
import { bearer, onEachEngine } from "./garden.ts";

const asStream = { Accept: "text/event-stream" };

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

function idsOf(events: readonly { id: number }[]): number[] {
  return events.map(({ id }) => id);
}

onEachEngine((garden) => {
  const { call, plant, fetch, listen, service } = garden;

  /** Stores plants. The creation of each is an event. */
  async function storePlants(count: number): Promise<void> {
    await plant(Array.from({ length: count }, () => ({ name: "Fern" })));
  }

  describe("a stream", () => {
    test("sends events as they happen, with who did what", async () => {
      await storePlants(2);
      const bob = await service.makeToken({ user: "bob", garden: garden.name });
      const events = await listen();

      await call("POST /plants", 201, { name: "Ivy" }, bearer(bob));
      await call("DELETE /plants/3", 204);

      expect(await events.next()).toMatchObject({
        id: 3,
        type: "plant.created",
        data: { seq: 3, user: "bob" },
      });
      expect(await events.next()).toMatchObject({
        id: 4,
        type: "plant.deleted",
        data: { user: "ann", plant: { id: 3, name: "Ivy", tag: "" } },
      });
      await events.close();
    });

    /** The text of a stream until the end of its first event. */
    async function readToFirstEvent(stream: Response): Promise<string> {
      let text = "";
      for await (const bytes of stream.body ?? []) {
        text += new TextDecoder().decode(bytes);
        if (text.endsWith("}}\n\n")) break;
      }
      return text;
    }

    test("begins with its position, and the events after it", async () => {
      await storePlants(3);

      const response = await fetch("GET /events?after=2", undefined, asStream);

      expect(await readToFirstEvent(response)).toMatch(
        /^retry: 2000\nid: 2\n\nid: 3\nevent: plant\.created\ndata: \{"seq":3,.*\}\}\n\n$/,
      );
    });

    test("begins after Last-Event-ID, whatever after says", async () => {
      await storePlants(3);

      const headers = { ...asStream, "Last-Event-ID": "2" };
      const response = await fetch("GET /events?after=99", undefined, headers);

      expect(await readToFirstEvent(response)).toMatch(
        /^retry: 2000\nid: 2\n\nid: 3\nevent: plant\.created\ndata: \{"seq":3,.*\}\}\n\n$/,
      );
    });

    test("has each stored event once and in order, then the live ones", async () => {
      await storePlants(1_500);
      const positions = [0, 3, 1_499, 1_500];
      const streams = await Promise.all(
        positions.map((position) => listen({ "Last-Event-ID": String(position) })),
      );
      await call("POST /plants/bulk", 200, Array(300).fill({ name: "Ivy" }));
      // In the middle of the bulk.
      positions.push(1_650);
      streams.push(await listen({ "Last-Event-ID": "1650" }));

      for (const [index, stream] of streams.entries()) {
        const expected = range((positions[index] ?? 0) + 1, 1_800);
        expect(idsOf(await stream.take(expected.length))).toEqual(expected);
        await stream.close();
      }
    });

    test("ends if its client falls more than 256 KiB behind, which can resume", async () => {
      const slow = await listen();
      const fast = await listen();
      const seenByFast = fast.take(900);
      const largest = { name: "x".repeat(200), tag: "y".repeat(100) };
      await call("POST /plants/bulk", 200, Array(900).fill(largest));
      expect(idsOf(await seenByFast)).toEqual(range(1, 900));

      const seenBySlow = idsOf(await slow.take(900));
      expect(seenBySlow.length).toBeLessThan(700);

      const last = seenBySlow.at(-1) ?? 0;
      const resumed = await listen({ "Last-Event-ID": String(last) });
      expect(idsOf(await resumed.take(900 - last))).toEqual(range(last + 1, 900));
      await Promise.all([fast.close(), resumed.close()]);
    });

    test("ends when its token is revoked, but no other token", async () => {
      const otherToken = await service.makeToken({ user: "ann", garden: garden.name });
      const staying = await listen(bearer(otherToken));
      const ending = await listen();

      await service.revoke(await garden.token());

      expect(await ending.next()).toBeUndefined();
      await storePlants(1);
      expect(await staying.next()).toMatchObject({ id: 1 });
      await staying.close();
    });
  });

  describe("a token", () => {
    /** Waits until the service has noticed that its clients left, which takes some ticks. */
    async function waitUntilNobodyListens(): Promise<void> {
      const { feed } = service.parts;
      for (let waits = 0; feed.listeners > 0 && waits < 100; waits++) await Bun.sleep(50);
      expect(feed.listeners).toBe(0);
    }

    test("has up to 64 streams, and another one once one is closed", async () => {
      const streams: EventStreamReader[] = [];
      // One after the other: at once, they would be a load for a busy PostgreSQL.
      while (streams.length < 64) streams.push(await listen());

      const refused = await call("GET /events", 429, undefined, asStream);
      expect(refused.headers.get("Retry-After")).toBe("1");

      await streams[0]?.close();
      streams.push(await listen());
      await Promise.all(streams.map((stream) => stream.close()));
      await waitUntilNobodyListens();
    });

    test("opens no stream with HEAD", async () => {
      await waitUntilNobodyListens();

      await call("HEAD /events", 200, undefined, asStream);

      expect(service.parts.feed.listeners).toBe(0);
    });
  });
});
