/** Who did what: lines that tell the truth, and events that are read in any order. */
import { expect, spyOn, test } from "bun:test";
import { PlantStoreProblem } from "../client/problem-error.ts";
import { openState, until, url } from "../test/open-state.ts";
import { Activity } from "./activity.ts";
import { Api, type PlantEvent } from "./api.ts";
import { Feed } from "./feed.ts";

const { fetch, makeGarden } = openState();

/** `created`, `replaced` or `deleted`, and the plant: `2 Royal fern:pond`. */
function event(seq: number, what: string, text: string, user = "bob", minutes = 0): PlantEvent {
  const [, id = "", name = "", tag = ""] = /^(\d+) ([^:]+):?(.*)$/.exec(text) ?? [];
  const at = new Date(Date.UTC(2030, 0, 1, 12, minutes)).toISOString();
  const type = `plant.${what}` as PlantEvent["type"];
  return { seq, type, at, user, plant: { id: BigInt(id), name, tag } };
}

/** A service with these events. */
function makeActivity(events: readonly PlantEvent[]) {
  const asked: number[] = [];
  const activity = new Activity({
    async eventsBefore(seq = events.length + 1, limit = 200) {
      asked.push(limit);
      return events.slice(Math.max(0, seq - 1 - limit), seq - 1);
    },
  });
  const lines = () =>
    activity.lines.value.map(({ user, verb, movedTo, count, isCut, plants }) => {
      const changes = plants.map(({ plant, before }) =>
        before ? `${before.name}:${before.tag} → ${plant.name}:${plant.tag}` : plant.name,
      );
      const what = movedTo === undefined ? changes.join(", ") : `to ${movedTo}`;
      return `${user} ${verb} ${count}${isCut ? "+" : ""} ${what}`;
    });
  return { activity, lines, asked };
}

test("a line has what one user did in a row, with the newest name and what it was before", async () => {
  const { activity, lines } = makeActivity([
    event(1, "created", "1 Fern"),
    event(2, "created", "2 Ivy"),
    event(3, "replaced", "1 Tree fern", "carol"),
    event(4, "replaced", "1 Royal fern:pond", "carol"),
    event(5, "replaced", "9 Moss", "carol", 5),
    event(6, "deleted", "2 Ivy", "carol", 5),
  ]);
  await activity.open();
  expect(lines()).toEqual([
    "carol deleted 1 Ivy",
    "carol changed 1 Moss",
    "carol changed 1 Tree fern: → Royal fern:pond",
    "carol renamed 1 Fern: → Tree fern:",
    "bob added 2 Ivy, Fern",
  ]);
  // What the page had before says what changed, too.
  const moss = { id: 8n, name: "Moss", tag: "wall" };
  activity.add([event(7, "replaced", "8 Moss:pond", "dan", 9)], () => moss);
  expect(lines()[0]).toBe("dan moved 1 Moss:wall → Moss:pond");
});

test("plants that were moved to one tag are a line with their number and the tag", async () => {
  const { activity, lines } = makeActivity([
    event(1, "created", "1 Fern:shade"),
    event(2, "created", "2 Ivy:wall"),
    event(3, "replaced", "1 Fern:hall", "carol"),
    event(4, "replaced", "2 Ivy:hall", "carol"),
    event(5, "replaced", "1 Fern:shade", "dan"),
    event(6, "replaced", "2 Ivy:wall", "dan"),
  ]);
  await activity.open();
  expect(lines()).toEqual([
    "dan moved 2 Ivy:hall → Ivy:wall, Fern:hall → Fern:shade",
    "carol moved 2 to hall",
    "bob added 2 Ivy, Fern",
  ]);
});

test("plants whose earlier state nobody knows were changed, whatever tag they have now", async () => {
  const { activity, lines } = makeActivity([
    event(1, "replaced", "1 Fern:hall"),
    event(2, "replaced", "2 Ivy:hall"),
  ]);
  await activity.open();
  expect(lines()).toEqual(["bob changed 2 Ivy, Fern"]);
});

const figs = (count: number) =>
  Array.from({ length: count }, (_, at) => event(at + 2, "created", `${at + 2} Fig ${at}`));

test("an import of 5,000 plants is counted exactly, without a click", async () => {
  const { activity, lines, asked } = makeActivity([
    event(1, "created", "1 Ivy", "alice"),
    ...figs(5_000),
  ]);
  await activity.open();
  expect(lines()).toEqual(["bob added 5000 Fig 4999, Fig 4998, Fig 4997", "alice added 1 Ivy"]);
  expect(asked).toHaveLength(6);
  expect(activity.hasEarlier.value).toBe(false);
});

test("a longer import isn't counted to its end, and one click passes over it", async () => {
  const { activity, lines } = makeActivity([event(1, "created", "1 Ivy", "alice"), ...figs(8_000)]);
  await activity.open();
  expect(lines()).toEqual(["bob added 5200+ Fig 7999, Fig 7998, Fig 7997"]);
  await activity.showEarlier();
  expect(lines()[1]).toBe("alice added 1 Ivy");
});

test("a line whose count isn't known yet waits until somebody asks for earlier ones", async () => {
  const days = Array.from({ length: 20 }, (_, at) =>
    event(at + 302, "created", `${at + 302} Moss ${at}`, `user ${at}`),
  );
  const { activity, lines } = makeActivity([
    ...figs(300).map((each) => ({ ...each, seq: each.seq - 1 })),
    ...days.map((each) => ({ ...each, seq: each.seq - 1 })),
  ]);
  await activity.open();
  expect(lines()).toHaveLength(20);
  await activity.showEarlier();
  expect(lines()[20]).toStartWith("bob added 300 ");
});

test("the last events are whole, although a page of long names ends early", async () => {
  const token = await makeGarden(Array(300).fill("x".repeat(200)));
  const events = await new Api({ url, token, fetch }).eventsBefore();
  expect(events.map(({ seq }) => seq)).toEqual(Array.from({ length: 200 }, (_, at) => at + 101));
});

const gone = new PlantStoreProblem({
  status: 410,
  headers: new Headers({ "content-type": "application/problem+json" }),
  text: '{"type":"urn:plantstore:problem:gone","detail":"It is gone."}',
});

test("events before one that is no longer kept are read from the oldest on, without a loop", async () => {
  const api = new Api({ url, token: "t" });
  const kept = [1_000_101, 1_000_102].map((seq) => event(seq, "created", "1 Fern"));
  using read = spyOn(api, "eventPage").mockImplementation(async ({ after } = {}) => {
    if (after !== undefined) throw gone;
    return { events: kept, next: undefined };
  });
  expect(await api.eventsBefore(1_000_103)).toEqual(kept);
  expect(await api.eventsBefore(1_000_101)).toEqual([]);
  const asked = read.mock.calls.map(([options]) => options?.after);
  expect(asked).toEqual([999_902, undefined, 999_900, undefined]);
});

test("a feed waits for responses, goes on where it stopped while it was hidden, and skips what it missed", async () => {
  const token = await makeGarden(["Fern"]);
  const seen: string[] = [];
  let looks = 0;
  const api = new Api({
    url,
    token,
    async fetch(target, init) {
      const response = await fetch(target, init);
      // The stream is faster than the response.
      if (init.method === "POST") await until(() => looks >= 2 || seen.length > 0);
      return response;
    },
  });
  using follow = spyOn(api, "events");
  const feed = new Feed(api, {
    onEvents: (events) => seen.push(...events.map(({ plant }) => plant.name)),
    isBusy() {
      looks++;
      return api.isWriting;
    },
    onMissed: () => seen.push("missed"),
  });
  feed.start((await api.me()).lastEvent);
  await api.create({ name: "Ivy" });
  expect(seen).toEqual([]);
  await until(() => seen.includes("Ivy"));
  feed.setHidden(true);
  await api.create({ name: "Moss" });
  feed.setHidden(false);
  await until(() => seen.includes("Moss"));
  feed.setHidden(true);
  await api.create({ name: "Rose" });
  follow.mockImplementationOnce(() => {
    throw gone;
  });
  feed.setHidden(false);
  await until(() => seen.includes("missed"));
  await api.create({ name: "Sage" });
  await until(() => seen.includes("Sage"));
  feed.setHidden(true);
  expect(seen).toEqual(["Ivy", "Moss", "missed", "Sage"]);
  expect(follow.mock.calls.map(([options]) => options?.after)).toEqual([1, 2, 3, 4]);
});
