/** `plantstore events`: what happened in a garden, what is happening, and all of it to a URL. */
import type { PlantEvent, PlantStore } from "../../client/plant-store.ts";
import { hasCode } from "../../client/problem-error.ts";
import { integer, type Parser, parseDuration } from "../config.ts";
import { CliError, usageError } from "./cli-error.ts";
import { type Call, isForPeople, jsonFlag, readFlag, textFlag } from "./command.ts";
import { createPrinter, type Show } from "./event-lines.ts";
import { forwardEvents, readTarget, secretVariable } from "./forward-events.ts";
import { plantId, serviceCommand } from "./service-client.ts";
import { onStopSignal } from "./stop-signals.ts";

/** As many digits as `integer` reads. */
const numberMax = 999_999_999_999_999;
/** What `--follow` shows of the past, unless it is told. */
const lastDefault = 10;
/** They are held in memory. */
const lastMax = 100_000;
/** How far back to look at first for the start of a time. */
const lookBack = 1_000;

const duration: Parser<number> = {
  parse: (text) => parseDuration(text) || undefined,
  expected: "a time such as 30m, 2h or 7d",
};

/** Each says where to start. */
const startFlags = ["last", "since", "after"] as const;
const shownFlags = [...startFlags, "follow", "user", "plant"] as const;
const forwardFlags = ["state", "from"] as const;

export const eventsCommand = serviceCommand({
  name: "events",
  summary: "Show who added, changed and deleted plants, or send every event to a URL.",
  words: [],
  flags: {
    follow: { help: "go on with what happens, until Ctrl+C" },
    last: {
      placeholder: "N",
      help: "only the last N events",
      fallback: `all that are kept; with --follow, ${lastDefault}`,
    },
    since: { placeholder: "TIME", help: "only events of the last 30m, 2h or 7d" },
    after: { placeholder: "NUMBER", help: "only events after this one" },
    user: { placeholder: "USER", help: "only what this user did" },
    plant: { placeholder: "ID", help: "only what happened to this plant" },
    json: { ...jsonFlag, help: "print JSON, an event per line" },
    forward: { placeholder: "URL", help: "send each event to this URL, signed, until it arrives" },
    state: { placeholder: "FILE", help: "where --forward keeps its position" },
    from: {
      placeholder: "now|start",
      help: "where --forward begins if there is no such file: start is the oldest event kept",
      fallback: "now",
    },
  },
  variables: { [secretVariable]: "what --forward signs with: whsec_ and 24 to 64 bytes in base64" },
  examples: [
    "plantstore events --since 2h --user alice",
    "plantstore events --follow",
    "plantstore events --json | jq -r 'select(.user == \"alice\").plant.name'",
    "plantstore events --forward https://example.com/hook --state hook.state",
  ],
  async run(store, call) {
    refuseMixed(call);
    const target = call.flags.forward === undefined ? undefined : readTarget(call);
    const range = readRange(call);
    const { garden, lastEvent } = await store.me();
    if (lastEvent === undefined) {
      throw new CliError("This service keeps no events: its setting --events is off.");
    }
    if (target) return forwardEvents(store, call, { ...target, garden, lastEvent });
    await showEvents(store, call, range, lastEvent);
    return undefined;
  },
});

/** Throws a `CliError` if flags don't go together. */
function refuseMixed({ flags }: Call): void {
  const find = (...names: readonly string[]) => names.filter((name) => flags[name] !== undefined);
  if (find(...startFlags).length > 1) {
    throw usageError("Use only one of --last, --since and --after.");
  }
  const isForwarding = flags.forward !== undefined;
  const [other] = find(...(isForwarding ? shownFlags : forwardFlags));
  if (other === undefined) return;
  throw usageError(
    isForwarding
      ? `--forward sends every event. Leave out --${other}.`
      : `--${other} is for --forward URL.`,
  );
}

interface Range {
  /** Absent: all of them. */
  readonly count: number | undefined;
  readonly after: number | undefined;
  readonly sinceMs: number | undefined;
  readonly matches: (event: PlantEvent) => boolean;
}

function readRange(call: Call): Range {
  const after = readFlag(call, "after", integer(0, numberMax));
  const sinceMs = readFlag(call, "since", duration);
  const count = readFlag(call, "last", integer(0, lastMax));
  const user = textFlag(call, "user");
  const plant = readFlag(call, "plant", plantId);
  const isFromNow = call.flags.follow === true && after === undefined && sinceMs === undefined;
  return {
    count: count ?? (isFromNow ? lastDefault : undefined),
    after,
    sinceMs: sinceMs === undefined ? undefined : Date.now() - sinceMs,
    matches: (event) =>
      (user === undefined || event.user === user) &&
      (plant === undefined || event.plant.id === plant),
  };
}

async function showEvents(
  store: PlantStore,
  call: Call,
  range: Range,
  lastEvent: number,
): Promise<void> {
  const { count, after, sinceMs = Number.NEGATIVE_INFINITY, matches } = range;
  const isFollowing = call.flags.follow === true;
  const print = createPrinter(call, isFollowing ? lastEvent : undefined);
  let position = after ?? lastEvent;
  let shown = 0;
  const show: Show = (events) => {
    const some = events.filter((event) => matches(event) && Date.parse(event.at) >= sinceMs);
    position = events.at(-1)?.seq ?? position;
    shown += some.length;
    print(some);
  };
  if (count === undefined) {
    const start = after ?? (await findTime(store, lastEvent, sinceMs));
    for await (const events of readKept(store, start, after === undefined)) show(events);
  } else {
    const last = await readLast(store, lastEvent, count, matches);
    show(last.events);
    position = last.position;
  }
  if (isFollowing) await follow(store, position, show);
  else if (shown === 0 && isForPeople(call)) call.terminal.say("There are no events.");
}

/** Pages of events. With `mayMiss`, those that are no longer kept are left out, else a problem. */
async function* readKept(
  store: PlantStore,
  after: number | undefined,
  mayMiss: boolean,
): AsyncGenerator<PlantEvent[], void, undefined> {
  for (let position = after; ; ) {
    const { events, next } = await store.eventPage({ after: position }).catch((error) => {
      if (!mayMiss || !hasCode(error, "gone")) throw error;
      return store.eventPage();
    });
    yield events;
    if (next === undefined) return;
    position = next;
  }
}

/** The last events that match: looks back ten times as far until it finds enough. */
async function readLast(
  store: PlantStore,
  lastEvent: number,
  count: number,
  matches: Range["matches"],
): Promise<{ readonly events: PlantEvent[]; readonly position: number }> {
  for (let back = count; ; back *= 10) {
    const after = Math.max(0, lastEvent - back);
    let events: PlantEvent[] = [];
    let first: number | undefined;
    let position = lastEvent;
    for await (const page of readKept(store, after, true)) {
      first ??= page[0]?.seq;
      position = page.at(-1)?.seq ?? position;
      events = [...events, ...page.filter(matches)].slice(-count);
    }
    const isOldest = after === 0 || first !== after + 1;
    if (isOldest || events.length >= count) return { events, position };
  }
}

/** The number of an event before that time; absent if no such event is kept. */
async function findTime(
  store: PlantStore,
  lastEvent: number,
  timeMs: number,
): Promise<number | undefined> {
  if (timeMs === Number.NEGATIVE_INFINITY) return undefined;
  for (let back = lookBack; back < lastEvent; back *= 10) {
    const after = lastEvent - back;
    const { events } = await store.eventPage({ after, limit: 1 }).catch((error) => {
      if (!hasCode(error, "gone")) throw error;
      return { events: [] };
    });
    const [first] = events;
    if (first === undefined) return undefined;
    if (Date.parse(first.at) < timeMs) return after;
  }
  return undefined;
}

async function follow(store: PlantStore, after: number, show: Show): Promise<void> {
  const controller = new AbortController();
  const { signal } = controller;
  const stopListening = onStopSignal(() => controller.abort());
  try {
    for await (const event of store.events({ after, signal })) show([event]);
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    stopListening();
  }
}
