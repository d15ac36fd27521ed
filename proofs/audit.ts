/**
 * Whether a garden's plants and events are what its clients' responses say: no confirmed write is
 * lost, undone or done twice, each has one event, every event has its write, and their order is one
 * that the responses allow. That events fit the plants is checked by `auditStore`.
 */

import type { Caller } from "../testing/kept-connection.ts";
import { Patience } from "../testing/patience.ts";
import { insist } from "../testing/running-service.ts";
import { isSettled, type Ledger, type ListedPlant, readList, tagOf } from "./ledger.ts";

export interface LoggedEvent {
  readonly seq: number;
  readonly type: `plant.${"created" | "replaced" | "deleted"}`;
  readonly user: string;
  readonly plant: ListedPlant;
}

/** A write in the ledger's moments. `confirmedAt` is infinite if no response said what happened. */
interface SentWrite {
  readonly sentAt: number;
  confirmedAt: number;
}

/** Every broken promise. Nobody may write during the audit. */
export async function auditGarden(service: Caller, token: string, ledger: Ledger) {
  const faults = ledger.audit(await listPlants(service, token));
  const { user, lastEvent } = await (await get(service, token, "/me")).json();
  const events = await readLog(service, token);
  const isWhole = events.every(({ seq }, index) => seq === index + 1);
  if (!isWhole || events.length !== lastEvent) {
    faults.push(`the log has ${events.length} events up to ${events.at(-1)?.seq} of ${lastEvent}`);
  }
  const writes = findWrites(ledger);
  /** When the first of the later events' writes was confirmed. */
  let confirmedAt = Number.POSITIVE_INFINITY;
  for (const event of events.toReversed()) {
    const { id, name, tag } = event.plant;
    const version = Number(/^\d+/.exec(tag)?.[0] ?? 0);
    const what = describe(event.type.slice("plant.".length), name, version);
    const write = writes.get(what);
    if (!write) faults.push(`an event without its write, or two of one write: ${what}`);
    if (confirmedAt < (write?.sentAt ?? 0)) faults.push(`before an earlier write: ${what}`);
    const isSame = event.user === user && id === (ledger.find(name)?.id ?? id);
    if (!isSame || tag !== tagOf(name, version)) faults.push(`not as it was sent: ${what}`);
    writes.delete(what);
    confirmedAt = Math.min(confirmedAt, write?.confirmedAt ?? confirmedAt);
  }
  for (const [what, { confirmedAt }] of writes) {
    if (Number.isFinite(confirmedAt)) faults.push(`a write without its event: ${what}`);
  }
  return faults;
}

/** All plants, with their tags. */
export async function listPlants(service: Caller, token: string): Promise<ListedPlant[]> {
  return readList(await (await get(service, token, "/plants?include=id")).text());
}

/** All pages. */
export async function readLog(service: Caller, token: string): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  for (;;) {
    const after = events.at(-1)?.seq ?? 0;
    const page = await get(service, token, `/events?limit=1000&after=${after}`);
    events.push(...readList<LoggedEvent>(await page.text()));
    if (!page.headers.has("link")) return events;
  }
}

async function get(service: Caller, token: string, target: string): Promise<Response> {
  // An instance may have just found its database again.
  const response = await insist(() => service.call(`GET ${target}`, { token }), new Patience(100));
  if (response.status === 200) return response;
  throw new Error(`GET ${target}: ${response.status} ${await response.text()}`);
}

/** A name is created and deleted at most once, and each of its versions is put at most once. */
function describe(kind: string, name: string, version: number): string {
  return kind === "replaced" ? `replaced ${name} ${version}` : `${kind} ${name}`;
}

function findWrites({ entries }: Ledger): Map<string, SentWrite> {
  const writes = new Map<string, SentWrite>();
  for (const [at, entry] of entries.entries()) {
    const { name, state, versions, wasPresent } = entry;
    const note = (kind: string, isConfirmed: boolean, version = 0) => {
      const what = describe(kind, name, version);
      const write = writes.get(what) ?? { sentAt: at, confirmedAt: Number.POSITIVE_INFINITY };
      if (isConfirmed) write.confirmedAt = Math.min(write.confirmedAt, at);
      writes.set(what, write);
    };
    note("created", wasPresent);
    for (const version of versions) if (version > 0) note("replaced", isSettled(entry), version);
    if (wasPresent && state !== "present") note("deleted", state === "absent");
  }
  return writes;
}
