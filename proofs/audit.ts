/**
 * Whether a garden's plants and events are what its clients' responses say: no confirmed write is
 * lost, undone or done twice, each has one event, every event has its write, and their order is one
 * that the responses allow. That events fit the plants is checked by `auditStore`.
 */
import { insist } from "../test/end-to-end/running-service.ts";
import type { Caller } from "./kept-connection.ts";
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
  const plants = await listPlants(service, token);
  return [...ledger.audit(plants), ...(await auditLog(service, token, ledger))];
}

/** All plants, with their tags. */
export async function listPlants(service: Caller, token: string): Promise<ListedPlant[]> {
  const response = await service.call("GET /plants?include=id", { token });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`GET /plants: ${response.status} ${text}`);
  return readList(text);
}

/** A new plant gets an id that no plant had before. */
export async function checkNextId(service: Caller, token: string, highestId: bigint) {
  const response = await service.call("POST /plants", { token, body: '{"name":"next"}' });
  const id = BigInt(response.headers.get("location")?.split("/").at(-1) ?? 0);
  const isNew = response.status === 201 && id > highestId;
  return isNew ? [] : [`a new plant: ${response.status}, with the id ${id} after ${highestId}`];
}

/** All pages. A log with a gap ends before it. */
export async function readLog(service: Caller, token: string): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = [];
  for (;;) {
    const line = `GET /events?limit=1000&after=${events.at(-1)?.seq ?? 0}`;
    const response = await insist(() => service.call(line, { token }));
    const text = await response.text();
    if (response.status === 410) return events;
    if (response.status !== 200) throw new Error(`${line}: ${response.status} ${text}`);
    events.push(...readList<LoggedEvent>(text));
    if (!response.headers.has("link")) return events;
  }
}

async function auditLog(service: Caller, token: string, ledger: Ledger): Promise<string[]> {
  const me = await insist(() => service.call("GET /me", { token }));
  if (me.status !== 200) throw new Error(`GET /me: ${me.status} ${await me.text()}`);
  const { user, lastEvent } = await me.json();
  const events = await readLog(service, token);
  const faults: string[] = [];
  const isWhole = events.every(({ seq }, index) => seq === index + 1);
  if (!isWhole || events.length !== lastEvent) {
    faults.push(`the log has ${events.length} events up to ${events.at(-1)?.seq} of ${lastEvent}`);
  }
  const writes = findWrites(ledger);
  const seen = new Set<string>();
  /** When the first of the later events' writes was confirmed. */
  let confirmedAt = Number.POSITIVE_INFINITY;
  for (const event of events.toReversed()) {
    const { id, name, tag } = event.plant;
    const version = Number(/^\d+/.exec(tag)?.[0] ?? 0);
    const what = describe(event.type.slice("plant.".length), name, version);
    const write = writes.get(what);
    if (!write) faults.push(`an event without its write: ${what}`);
    if (seen.has(what)) faults.push(`two events of one write: ${what}`);
    if (confirmedAt < (write?.sentAt ?? 0)) faults.push(`before an earlier write: ${what}`);
    const isSame = event.user === user && id === (ledger.find(name)?.id ?? id);
    if (!isSame || tag !== tagOf(name, version)) faults.push(`not as it was sent: ${what}`);
    seen.add(what);
    confirmedAt = Math.min(confirmedAt, write?.confirmedAt ?? confirmedAt);
  }
  for (const [what, { confirmedAt }] of writes) {
    if (confirmedAt < ledger.entries.length && !seen.has(what))
      faults.push(`a write without its event: ${what}`);
  }
  return faults;
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
