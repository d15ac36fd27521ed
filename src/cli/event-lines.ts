/** Events as commands print them: rows of a table that stays aligned, or JSON. */
import type { PlantEvent } from "../../client/plant-store.ts";
import { renderDraft } from "../../client/wire-text.ts";
import { type Call, isForPeople } from "./command.ts";
import { renderTable, renderTime } from "./terminal.ts";

export type Show = (events: readonly PlantEvent[]) => void;

/** Rows that come one by one can't know what follows, so their columns leave room for it. */
const roomyWidths = [0, 0, 12, "replaced".length, 6, 24] as const;

/** `lastEvent` is given if events come one by one. */
export function createPrinter(call: Call, lastEvent?: number): Show {
  const { terminal } = call;
  if (!isForPeople(call)) {
    return (events) => terminal.out(events.map((event) => `${renderEvent(event)}\n`).join(""));
  }
  const widths: number[] = [];
  if (lastEvent !== undefined) {
    widths.push(...roomyWidths);
    widths[0] = String(lastEvent).length + 1;
  }
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

/** As the service sends it, with all digits of the id. */
export function renderEvent({ plant, ...event }: PlantEvent): string {
  return `${JSON.stringify(event).slice(0, -1)},"plant":${renderDraft(plant)}}`;
}
