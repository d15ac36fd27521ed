/** `plantstore events`: what happened in a garden, and with --follow, what is happening. */

import { renderJsonPlant } from "../../client/files/renderer.ts";
import type { PlantEvent, PlantStore } from "../../client/plant-store.ts";
import { integer } from "../config.ts";
import { CliError } from "./cli-error.ts";
import { type Call, isForPeople, jsonFlag, readFlag } from "./command.ts";
import { serviceCommand } from "./service-client.ts";
import { onStopSignal } from "./stop-signals.ts";
import { renderTable, renderTime } from "./terminal.ts";

/** As many digits as `integer` reads. */
const numberMax = 999_999_999_999_999;

export const eventsCommand = serviceCommand({
  name: "events",
  summary: "Show who added, changed and deleted plants: a table at a terminal, JSON elsewhere.",
  words: [],
  flags: {
    follow: { help: "go on with what happens, until Ctrl+C" },
    after: {
      placeholder: "NUMBER",
      help: "only events after this one",
      fallback: "from the oldest that is kept",
    },
    json: { ...jsonFlag, help: "print JSON, an event per line" },
  },
  examples: [
    "plantstore events",
    "plantstore events --follow --after 9120",
    "plantstore events --json | jq -r 'select(.user == \"alice\").plant.name'",
  ],
  async run(store, call) {
    const after = readFlag(call, "after", integer(0, numberMax));
    const { lastEvent } = await store.me();
    if (lastEvent === undefined) {
      throw new CliError("This service keeps no events: its setting --events is off.");
    }
    const show = createPrinter(call);
    const last = await showKept(store, after, show);
    if (call.flags.follow === true) await follow(store, last ?? lastEvent, show);
    else if (last === after && isForPeople(call)) call.terminal.say("There are no events.");
  },
});

type Show = (events: readonly PlantEvent[]) => void;

/** Returns the number of the last event, or `after` if there is none. */
async function showKept(
  store: PlantStore,
  after: number | undefined,
  show: Show,
): Promise<number | undefined> {
  for (let last = after; ; ) {
    const { events, next } = await store.eventPage({ after: last });
    show(events);
    last = events.at(-1)?.seq ?? last;
    if (next === undefined) return last;
  }
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

function createPrinter(call: Call): Show {
  const { terminal } = call;
  if (!isForPeople(call)) return (events) => terminal.out(events.map(renderJson).join(""));
  const widths: number[] = [];
  let header = [["EVENT", "WHEN", "WHO", "WHAT", "ID", "NAME", "TAG"]];
  return (events) => {
    if (events.length === 0) return;
    terminal.out(renderTable([...header, ...events.map(toRow)], widths));
    header = [];
  };
}

function toRow({ seq, at, user, type, plant: { id, name, tag } }: PlantEvent): string[] {
  const what = type.replace("plant.", "");
  return [String(seq), renderTime(Date.parse(at)), user, what, String(id), name, tag];
}

function renderJson({ plant, ...event }: PlantEvent): string {
  return `${JSON.stringify(event).slice(0, -1)},"plant":${renderJsonPlant(plant)}}\n`;
}
