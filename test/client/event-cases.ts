/** The client and a garden's events: pages, streams, and what breaks streams. */
import assert from "node:assert/strict";
import type { PlantEvent } from "../../client/plant-store.ts";
import { type ClientCases, collect, failure, openStore, proxied } from "./client-case.ts";

export const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);
const drafts = (count: number) => range(1, count).map((number) => ({ name: `Plant ${number}` }));

/** The next events; then the loop is left. */
export async function take(events: AsyncIterable<PlantEvent>, count: number) {
  const taken: PlantEvent[] = [];
  for await (const event of events) if (taken.push(event) === count) break;
  return taken;
}

export const seqsOf = (events: readonly PlantEvent[]) => events.map(({ seq }) => seq);

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
    assert.deepEqual(
      [next, ...events.map(({ seq, type }) => `${seq} ${type}`)],
      [undefined, "2 plant.replaced", "3 plant.deleted"],
    );
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
    const first = take(store.events(), 1);
    let isHere = false;
    void first.then(() => {
      isHere = true;
    });
    // Somewhen after its request for the last number.
    for (let id = 2; !isHere; id++) {
      await store.create({ name: "Fern", id });
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.equal((await first)[0]?.plant.name, "Fern");
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
    const waiting = collect(store.events({ after: 0, signal: controller.signal }));
    setTimeout(() => controller.abort(new RangeError("enough")), 50);
    assert.equal((await failure(waiting, RangeError)).message, "enough");
  },
};
