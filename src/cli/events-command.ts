/** `plantstore events`: what happened in a garden, what is happening, and all of it to a URL. */
import type { PlantEvent, PlantStore, Whole } from "../../client/plant-store.ts";
import { hasCode } from "../../client/problem-error.ts";
import { integer, type Parser, parseDuration } from "../shared/config.ts";
import { CliError, usageError } from "./cli-error.ts";
import { type Call, isForPeople, jsonFlag, readFlag, textFlag } from "./command.ts";
import { forwardEvents, readTarget, renderEvent, secretVariable } from "./forward-events.ts";
import { plantId, serviceCommand } from "./service-client.ts";
import { listenForStop } from "./stop-signals.ts";
import { renderTable, renderTime } from "./terminal.ts";

/** As many digits as `integer` reads. */
const numberMax = 999_999_999_999_999;
/** What `--follow` shows of the past, unless it is told. */
const lastDefault = 10;
/** They are held in memory. */
const lastMax = 100_000;

const duration: Parser<number> = {
  parse: (text) => parseDuration(text) || undefined,
  expected: "a time such as 30m, 2h or 7d",
};

/** Flags that choose what is shown. */
const shownFlags = ["last", "since", "after", "follow", "user", "plant"] as const;

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
    const target = call.flags.forward === undefined ? undefined : readTarget(call);
    const other = shownFlags.find((name) => call.flags[name] !== undefined);
    if (target && other) throw usageError(`--forward sends every event. Leave out --${other}.`);
    const selection = readSelection(call);
    const { garden, lastEvent } = await store.me();
    if (lastEvent === undefined) {
      throw new CliError("This service keeps no events: its setting --events is off.");
    }
    if (target) {
      const show = createPrinter(call);
      return forwardEvents(store, call, { ...target, garden, lastEvent, show });
    }
    await showEvents(store, call, selection, lastEvent);
    return undefined;
  },
});

interface Selection {
  /** Absent: all of them. */
  readonly count: number | undefined;
  readonly after: number | undefined;
  /** Absent: no filter is given. */
  readonly matches: ((event: PlantEvent) => boolean) | undefined;
}

function readSelection(call: Call): Selection {
  const after = readFlag(call, "after", integer(0, numberMax));
  const since = readFlag(call, "since", duration);
  const count = readFlag(call, "last", integer(0, lastMax));
  const user = textFlag(call, "user");
  const plant = readFlag(call, "plant", plantId);
  const sinceMs = Date.now() - (since ?? 0);
  const matches = (event: PlantEvent) =>
    (since === undefined || Date.parse(event.at) >= sinceMs) &&
    (user === undefined || event.user === user) &&
    (plant === undefined || event.plant.id === plant);
  const isFiltered = since !== undefined || user !== undefined || plant !== undefined;
  const isFromNow = call.flags.follow === true && after === undefined && since === undefined;
  return {
    count: count ?? (isFromNow ? lastDefault : undefined),
    after,
    matches: isFiltered ? matches : undefined,
  };
}

async function showEvents(
  store: PlantStore,
  call: Call,
  { count, after, matches }: Selection,
  lastEvent: number,
): Promise<void> {
  // Without a filter, the last events are known by their numbers.
  const isCounted = count !== undefined && matches === undefined;
  const start = after ?? (isCounted ? Math.max(0, lastEvent - count) : undefined);
  const select = (events: PlantEvent[]) => (matches ? events.filter(matches) : events);
  const print = createPrinter(call);
  let position = after ?? lastEvent;
  let shown = 0;
  const show = (events: readonly PlantEvent[]) => {
    shown += events.length;
    if (events.length > 0) print(events);
  };
  let last: PlantEvent[] = [];
  for await (const events of readKept(store, start, after === undefined)) {
    position = events.at(-1)?.seq ?? position;
    if (count === undefined) show(select(events));
    else {
      const known = [...last, ...select(events)];
      last = known.slice(Math.max(0, known.length - count));
    }
  }
  show(last);
  if (call.flags.follow === true) {
    await follow(store, position, (event) => show(select([event])));
  } else if (shown === 0 && isForPeople(call)) call.terminal.say("There are no events.");
}

/** Pages of events. With `mayMiss`, the first one is the oldest that is kept instead of failing. */
async function* readKept(
  store: PlantStore,
  after: number | undefined,
  mayMiss: boolean,
): AsyncGenerator<PlantEvent[], void, undefined> {
  for (let position = after; ; ) {
    const { events, next } = await store.eventPage({ after: position }).catch((error) => {
      // Later than at the start there is a gap, and the oldest page would lead to it again.
      if (position !== after || !mayMiss || !hasCode(error, "gone")) throw error;
      return store.eventPage();
    });
    yield events;
    if (next === undefined) return;
    position = next;
  }
}

async function follow(
  store: PlantStore,
  after: number,
  show: (event: PlantEvent) => void,
): Promise<void> {
  using listening = listenForStop();
  const signal = listening.stop.asked;
  try {
    for await (const event of store.events({ after, signal })) show(event);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Rows that come one by one can't know what follows, so their columns leave room for it. */
const roomyWidths = [0, 0, 12, "replaced".length, 6, 24];

/** Rows of one table, or JSON. */
function createPrinter(call: Call): (events: readonly PlantEvent[]) => void {
  const { terminal } = call;
  if (!isForPeople(call)) {
    return (events) => terminal.out(events.map((event) => `${renderEvent(event)}\n`).join(""));
  }
  const isLive = call.flags.follow === true || call.flags.forward !== undefined;
  const widths = isLive ? [...roomyWidths] : [];
  let header = [["EVENT", "WHEN", "WHO", "WHAT", "ID", "NAME", "TAG"]];
  return (events) => {
    terminal.out(renderTable([...header, ...events.map(toRow)], widths));
    header = [];
  };
}

function toRow({ seq, at, user, type, plant }: PlantEvent): string[] {
  const { id, name, tag }: Whole<"name" | "tag"> = plant;
  const what = type.replace("plant.", "");
  return [String(seq), renderTime(Date.parse(at)), user, what, String(id), name, tag];
}
