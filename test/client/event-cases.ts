/** The client and a garden's events: pages, streams, and what breaks streams. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { PlantEvent } from "../../client/plant-store.ts";
import { type ClientCases, failure, openStore, proxied } from "./client-case.ts";

const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);
const drafts = (count: number) => range(1, count).map((number) => ({ name: `Plant ${number}` }));

/** The next event; then the loop is left. */
export async function next(events: AsyncIterable<PlantEvent>) {
  for await (const event of events) return event;
  return assert.fail("The events ended.");
}

export const eventCases: ClientCases = {
  async "shows what happened, page by page, with exact ids"({ store }) {
    const id = 2n ** 53n + 1n;
    await store.create({ id, name: '"id":1', tag: "shade" });
    await store.put(id, { name: "Fern" });
    await store.delete(id);
    const first = await store.eventPage({ limit: 1 });
    const { user } = await store.me();
    const at = first.events[0]?.at ?? "";
    const plant = { id, name: '"id":1', tag: "shade" };
    const created = { seq: 1, type: "plant.created", at, user, plant };
    assert.deepEqual(first, { events: [created], next: 1 });
    const { events, next } = await store.eventPage({ after: 1 });
    const others = events.map(({ seq, type }) => `${seq} ${type}`);
    assert.deepEqual([next, others], [undefined, ["2 plant.replaced", "3 plant.deleted"]]);
    assert.equal((await store.me()).lastEvent, 3);
  },

  async "follows events from a number on: what is kept, then what happens"({ store }) {
    await store.createMany(drafts(1_500));
    const seen: number[] = [];
    for await (const { seq } of store.events({ after: 2 })) {
      // Once all that is kept is here, so the rest comes by the stream.
      if (seen.push(seq) === 1_498) void store.createMany(drafts(30));
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
    // At some point after it asked for the last number.
    while (!seen) {
      await store.create({ name: "Fern" });
      await sleep(50);
    }
    await following;
    assert.equal(seen.plant.name, "Fern");
  },

  "yields each event once and in order, however often streams break": proxied(
    async (store, proxy, world) => {
      const writer = openStore(world);
      const seen: number[] = [];
      await writer.createMany(drafts(10));
      for await (const { seq } of store.events({ after: 0 })) {
        seen.push(seq);
        if (seq === 40) break;
        if (seq % 10 !== 0) continue;
        if (seq === 20) proxy.breakNext("after", "midway");
        proxy.cut();
        await writer.createMany(drafts(10));
      }
      assert.deepEqual(seen, range(1, 40));
    },
  ),

  async "ends events with the signal's reason, whatever it waits for"({ store }) {
    const controller = new AbortController();
    const waiting = next(store.events({ after: 0, signal: controller.signal }));
    setTimeout(() => controller.abort(new RangeError("enough")), 50);
    assert.equal((await failure(waiting, RangeError)).message, "enough");
  },
};
