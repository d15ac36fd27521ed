/** The client and a garden's events: pages, streams, and what breaks streams. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { PlantDraft, PlantEvent } from "../../client/plant-store.ts";
import { type ClientCases, failure, openStore, proxied } from "./client-case.ts";

/** The integers from the first to the last. */
function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

function makeDrafts(count: number): PlantDraft[] {
  return range(1, count).map((number) => ({ name: `Plant ${number}` }));
}

/** The next event; then the loop is left. */
export async function next(events: AsyncIterable<PlantEvent>): Promise<PlantEvent> {
  for await (const event of events) return event;
  return assert.fail("The events ended.");
}

export const eventCases: ClientCases = {
  async "shows an event with all its fields, and the exact id of its plant"({ store }) {
    const plant = { id: 2n ** 53n + 1n, name: '"id":1', tag: "shade" };
    await store.create(plant);

    const { events } = await store.eventPage();

    const { user } = await store.me();
    const at = events[0]?.at ?? "";
    assert.equal(new Date(at).toISOString(), at);
    assert.deepEqual(events, [{ seq: 1, type: "plant.created", at, user, plant }]);
  },

  async "shows events page by page"({ store }) {
    await store.create({ id: 7, name: "Fern" });
    await store.put(7, { name: "Royal fern" });
    await store.delete(7);

    const first = await store.eventPage({ limit: 1 });
    assert.deepEqual(
      first.events.map(({ seq, type }) => ({ seq, type })),
      [{ seq: 1, type: "plant.created" }],
    );
    assert.equal(first.next, 1);

    const last = await store.eventPage({ after: first.next });
    assert.deepEqual(
      last.events.map(({ seq, type }) => ({ seq, type })),
      [
        { seq: 2, type: "plant.replaced" },
        { seq: 3, type: "plant.deleted" },
      ],
    );
    assert.equal(last.next, undefined);
  },

  async "knows the number of a garden's last event"({ store }) {
    await store.create({ id: 7, name: "Fern" });
    await store.delete(7);

    assert.equal((await store.me()).lastEvent, 2);
  },

  async "follows events after a number: what is kept, then what happens"({ store }) {
    await store.createMany(makeDrafts(1_500));
    const seen: number[] = [];

    for await (const { seq } of store.events({ after: 2 })) {
      seen.push(seq);
      // All that is kept is here, so the rest comes by the stream.
      if (seq === 1_500) void store.createMany(makeDrafts(30));
      if (seq === 1_530) break;
    }

    assert.deepEqual(seen, range(3, 1_530));
  },

  async "follows only what happens from now on, if no number is given"({ store }) {
    await store.create({ name: "Moss" });
    let seen: PlantEvent | undefined;
    const following = next(store.events()).then((event) => {
      seen = event;
    });

    // One of these comes after the client has asked for the last number.
    while (!seen) {
      await store.create({ name: "Fern" });
      await sleep(50);
    }

    await following;
    assert.equal(seen.plant.name, "Fern");
  },

  "yields each event once and in order, however often streams break": proxied(
    async ({ store, proxy, url, token }) => {
      const writer = openStore({ url, token });
      const seen: number[] = [];
      await writer.createMany(makeDrafts(10));

      for await (const { seq } of store.events({ after: 0 })) {
        seen.push(seq);
        if (seq === 40) break;
        const hasSeenAll = seq % 10 === 0;
        if (!hasSeenAll) continue;
        // Once, the next connections break, too.
        if (seq === 20) proxy.breakNext("after", "midway");
        proxy.cut();
        await writer.createMany(makeDrafts(10));
      }

      assert.deepEqual(seen, range(1, 40));
    },
  ),

  async "ends events with the signal's reason while it waits for one"({ store }) {
    const controller = new AbortController();
    const waiting = next(store.events({ after: 0, signal: controller.signal }));

    setTimeout(() => controller.abort(new RangeError("enough")), 50);

    assert.equal((await failure(waiting, RangeError)).message, "enough");
  },
};
