/** The activity, line by line, and the events that it and the page are made of. */
import { describe, expect, spyOn, test } from "bun:test";
import { PlantStoreProblem } from "../client/problem-error.ts";
import { openState, until, url } from "../test/open-state.ts";
import { Activity } from "./activity.ts";
import { Api, type Plant, type PlantEvent } from "./api.ts";
import { Feed } from "./feed.ts";

const { fetch, makeGarden } = openState();

interface EventPlant {
  readonly id: number;
  readonly name: string;
  readonly tag?: string;
}

/** An event before it has its number. It happens in the first minute unless told otherwise. */
function makeEvent(type: PlantEvent["type"], user: string, plant: EventPlant, second = 0) {
  const { id, name, tag = "" } = plant;
  const at = new Date(Date.UTC(2030, 0, 1, 12, 0, second)).toISOString();
  return { type, at, user, plant: { id: BigInt(id), name, tag } };
}

type Times = { readonly second?: number };

function createdBy(user: string, plant: EventPlant, { second }: Times = {}) {
  return makeEvent("plant.created", user, plant, second);
}

function replacedBy(user: string, plant: EventPlant, { second }: Times = {}) {
  return makeEvent("plant.replaced", user, plant, second);
}

function deletedBy(user: string, plant: EventPlant) {
  return makeEvent("plant.deleted", user, plant);
}

/** `Fern (hall)` */
function describePlant({ name, tag }: Plant): string {
  return tag === "" ? name : `${name} (${tag})`;
}

/** The activity of a garden in which this has happened, in this order. */
function makeActivity(...happenings: readonly Omit<PlantEvent, "seq">[]) {
  const events = happenings.map((happening, index) => ({ ...happening, seq: index + 1 }));
  const requestedLimits: number[] = [];
  const activity = new Activity({
    async eventsBefore(seq = events.length + 1, limit = 200) {
      requestedLimits.push(limit);
      return events.slice(Math.max(0, seq - 1 - limit), seq - 1);
    },
  });
  /** Who did what to how many plants, and the newest of them. */
  const lines = () =>
    activity.lines.value.map(({ user, verb, movedTo, count, isCut, plants }) => {
      const number = isCut ? `${count} or more` : `${count}`;
      if (movedTo !== undefined) return `${user} ${verb} ${number} to ${movedTo}`;
      const newest = plants.map(({ plant, before }) =>
        before ? `${describePlant(before)} → ${describePlant(plant)}` : describePlant(plant),
      );
      return `${user} ${verb} ${number}: ${newest.join(", ")}`;
    });
  const addLater = (happening: Omit<PlantEvent, "seq">) => {
    events.push({ ...happening, seq: events.length + 1 });
  };
  return { activity, lines, requestedLimits, addLater };
}

test("an activity that is closed while it loads begins anew", async () => {
  const { activity, lines, addLater } = makeActivity(createdBy("bob", { id: 1, name: "Fern" }));

  const opening = activity.open();
  activity.close();
  addLater(createdBy("carol", { id: 2, name: "Ivy" }));
  await activity.open();
  await opening;

  expect(lines()).toEqual(["carol added 1: Ivy", "bob added 1: Fern"]);
});

describe("an activity", () => {
  test("has a line for what one user did in a row, with the newest plant first", async () => {
    const { activity, lines } = makeActivity(
      createdBy("bob", { id: 1, name: "Fern" }),
      createdBy("bob", { id: 2, name: "Ivy" }),
      createdBy("carol", { id: 3, name: "Moss" }),
      createdBy("bob", { id: 4, name: "Rose" }),
    );

    await activity.open();

    expect(lines()).toEqual(["bob added 1: Rose", "carol added 1: Moss", "bob added 2: Ivy, Fern"]);
  });

  test("has separate lines for what was added, changed and deleted", async () => {
    const { activity, lines } = makeActivity(
      createdBy("bob", { id: 1, name: "Fern" }),
      replacedBy("bob", { id: 9, name: "Moss" }),
      deletedBy("bob", { id: 2, name: "Ivy" }),
    );

    await activity.open();

    expect(lines()).toEqual(["bob deleted 1: Ivy", "bob changed 1: Moss", "bob added 1: Fern"]);
  });

  test("has separate lines for what is a minute apart", async () => {
    const { activity, lines } = makeActivity(
      createdBy("bob", { id: 1, name: "Fern" }),
      createdBy("bob", { id: 2, name: "Ivy" }, { second: 59 }),
      createdBy("bob", { id: 3, name: "Moss" }, { second: 119 }),
    );

    await activity.open();

    expect(lines()).toEqual(["bob added 1: Moss", "bob added 2: Ivy, Fern"]);
  });

  test("has a line for each change of a plant, with what it was before", async () => {
    const { activity, lines } = makeActivity(
      createdBy("bob", { id: 1, name: "Fern" }),
      replacedBy("carol", { id: 1, name: "Tree fern" }),
      replacedBy("carol", { id: 1, name: "Royal fern", tag: "pond" }),
      replacedBy("carol", { id: 9, name: "Moss" }, { second: 300 }),
      deletedBy("carol", { id: 1, name: "Royal fern", tag: "pond" }),
    );

    await activity.open();

    expect(lines()).toEqual([
      "carol deleted 1: Royal fern (pond)",
      "carol changed 1: Moss",
      "carol changed 1: Tree fern → Royal fern (pond)",
      "carol renamed 1: Fern → Tree fern",
      "bob added 1: Fern",
    ]);
  });

  test("says what has changed if the page had the plant before", async () => {
    const { activity, lines } = makeActivity();
    await activity.open();

    const event = replacedBy("dan", { id: 8, name: "Moss", tag: "pond" });
    activity.add([{ ...event, seq: 1 }], () => ({ id: 8n, name: "Moss", tag: "wall" }));

    expect(lines()).toEqual(["dan moved 1: Moss (wall) → Moss (pond)"]);
  });

  test("calls plants changed whose earlier state isn't known, whatever tag they have now", async () => {
    const { activity, lines } = makeActivity(
      replacedBy("bob", { id: 1, name: "Fern", tag: "hall" }),
      replacedBy("bob", { id: 2, name: "Ivy", tag: "hall" }),
    );

    await activity.open();

    expect(lines()).toEqual(["bob changed 2: Ivy (hall), Fern (hall)"]);
  });

  test("has a line with the tag for plants that were moved to one tag", async () => {
    const { activity, lines } = makeActivity(
      createdBy("bob", { id: 1, name: "Fern", tag: "shade" }),
      createdBy("bob", { id: 2, name: "Ivy", tag: "wall" }),
      replacedBy("carol", { id: 1, name: "Fern", tag: "hall" }),
      replacedBy("carol", { id: 2, name: "Ivy", tag: "hall" }),
    );

    await activity.open();

    expect(lines()).toEqual(["carol moved 2 to hall", "bob added 2: Ivy (wall), Fern (shade)"]);
  });

  test("lists plants one by one that were moved to several tags", async () => {
    const { activity, lines } = makeActivity(
      createdBy("bob", { id: 1, name: "Fern", tag: "hall" }),
      createdBy("bob", { id: 2, name: "Ivy", tag: "hall" }),
      replacedBy("dan", { id: 1, name: "Fern", tag: "shade" }),
      replacedBy("dan", { id: 2, name: "Ivy", tag: "wall" }),
    );

    await activity.open();

    expect(lines()[0]).toBe("dan moved 2: Ivy (hall) → Ivy (wall), Fern (hall) → Fern (shade)");
  });

  /** `Fig 0`, `Fig 1` and so on. */
  function figsAddedByBob(count: number) {
    return Array.from({ length: count }, (_, index) =>
      createdBy("bob", { id: index + 2, name: `Fig ${index}` }),
    );
  }

  test("counts an import of 5,000 plants exactly, without a click", async () => {
    const { activity, lines, requestedLimits } = makeActivity(
      createdBy("alice", { id: 1, name: "Ivy" }),
      ...figsAddedByBob(5_000),
    );

    await activity.open();

    expect(lines()).toEqual(["bob added 5000: Fig 4999, Fig 4998, Fig 4997", "alice added 1: Ivy"]);
    expect(requestedLimits).toEqual([200, 1_000, 1_000, 1_000, 1_000, 1_000]);
    expect(activity.hasEarlier.value).toBe(false);
  });

  test("doesn't count a longer import to its end, and passes over it with one click", async () => {
    const { activity, lines } = makeActivity(
      createdBy("alice", { id: 1, name: "Ivy" }),
      ...figsAddedByBob(8_000),
    );

    await activity.open();
    expect(lines()).toEqual(["bob added 5200 or more: Fig 7999, Fig 7998, Fig 7997"]);

    await activity.showEarlier();
    expect(lines()[1]).toBe("alice added 1: Ivy");
  });

  test("holds a line back until it's counted, if there are others to show", async () => {
    const laterLines = Array.from({ length: 20 }, (_, index) =>
      createdBy(`user ${index}`, { id: index + 400, name: `Moss ${index}` }),
    );
    const { activity, lines } = makeActivity(...figsAddedByBob(300), ...laterLines);

    await activity.open();
    expect(lines()).toHaveLength(20);

    await activity.showEarlier();
    expect(lines()[20]).toStartWith("bob added 300: ");
  });
});

/** The response to a request for events that the service keeps no more. */
const gone = new PlantStoreProblem({
  status: 410,
  headers: new Headers({ "content-type": "application/problem+json" }),
  text: '{"type":"urn:plantstore:problem:gone","detail":"It is gone."}',
});

describe("recent events", () => {
  test("are the last 200, even if long names need more than one page", async () => {
    const plants = Array.from({ length: 300 }, () => ({ name: "x".repeat(200) }));
    const api = new Api({ url, token: await makeGarden(plants), fetch });

    const events = await api.eventsBefore();

    const lastSeqs = Array.from({ length: 200 }, (_, index) => index + 101);
    expect(events.map(({ seq }) => seq)).toEqual(lastSeqs);
  });

  test("start with the oldest one if those before it are gone", async () => {
    const fern = { id: 1, name: "Fern" };
    const kept = [
      { ...createdBy("bob", fern), seq: 1_000_101 },
      { ...replacedBy("bob", fern), seq: 1_000_102 },
    ];
    const api = new Api({ url, token: "t" });
    using read = spyOn(api, "eventPage").mockImplementation(async ({ after } = {}) => {
      if (after !== undefined) throw gone;
      return { events: kept, next: undefined };
    });

    expect(await api.eventsBefore(1_000_103)).toEqual(kept);
    expect(await api.eventsBefore(1_000_101)).toEqual([]);

    const requestedAfter = read.mock.calls.map(([options]) => options?.after);
    expect(requestedAfter).toEqual([999_902, undefined, 999_900, undefined]);
  });
});

describe("a feed", () => {
  test("reports an event only after the response to the page's own write", async () => {
    const seen: string[] = [];
    let busyChecks = 0;
    const api = new Api({
      url,
      token: await makeGarden([{ name: "Fern" }]),
      async fetch(target, init) {
        const response = await fetch(target, init);
        // The stream is faster than the response.
        if (init.method === "POST") await until(() => busyChecks >= 2 || seen.length > 0);
        return response;
      },
    });
    const feed = new Feed(api, {
      onEvents: (events) => seen.push(...events.map(({ plant }) => plant.name)),
      isBusy() {
        busyChecks++;
        return api.isWriting;
      },
      onMissed: () => seen.push("missed"),
    });
    feed.start((await api.me()).lastEvent);

    await api.create({ name: "Ivy" });

    expect(seen).toEqual([]);
    await until(() => seen.length > 0);
    expect(seen).toEqual(["Ivy"]);
    feed.setHidden(true);
  });

  /** A feed of a garden with one event. `requestedAfter` is where its streams have started. */
  async function openFeed() {
    const api = new Api({ url, token: await makeGarden([{ name: "Fern" }]), fetch });
    const follow = spyOn(api, "events");
    const seen: string[] = [];
    const feed = new Feed(api, {
      onEvents: (events) => seen.push(...events.map(({ plant }) => plant.name)),
      isBusy: () => false,
      onMissed: () => seen.push("missed"),
    });
    feed.start(1);
    const requestedAfter = () => follow.mock.calls.map(([options]) => options?.after);
    return { api, follow, feed, seen, requestedAfter };
  }

  test("goes on where it stopped while the page was hidden", async () => {
    const { api, feed, seen, requestedAfter } = await openFeed();
    await api.create({ name: "Ivy" });
    await until(() => seen.includes("Ivy"));

    feed.setHidden(true);
    await api.create({ name: "Moss" });
    feed.setHidden(false);

    await until(() => seen.includes("Moss"));
    expect(seen).toEqual(["Ivy", "Moss"]);
    expect(requestedAfter()).toEqual([1, 2]);
    feed.setHidden(true);
  });

  test("reports that it missed events that are gone, and goes on after them", async () => {
    const { api, follow, feed, seen, requestedAfter } = await openFeed();
    feed.setHidden(true);
    await api.create({ name: "Rose" });

    follow.mockImplementationOnce(() => {
      throw gone;
    });
    feed.setHidden(false);
    await until(() => seen.includes("missed"));
    await api.create({ name: "Sage" });

    await until(() => seen.includes("Sage"));
    expect(seen).toEqual(["missed", "Sage"]);
    expect(requestedAfter()).toEqual([1, 1, 2]);
    feed.setHidden(true);
  });
});
