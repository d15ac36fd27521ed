/**
 * A flood of creates while the storage is stalled: a bounded number waits, the rest is refused at
 * once, and reads go on. Afterwards the service is as before, with exactly the confirmed plants.
 */
import { Database } from "bun:sqlite";
import { Client } from "pg";
import { admissionDefaults } from "../../../src/http/admission.ts";
import type { RunningService } from "../../end-to-end/running-service.ts";
import { Ledger, readList } from "../ledger.ts";
import { sampleProcess } from "../process-growth.ts";
import type { Trial } from "../proof.ts";
import { numbered, numberMark, sendCrowd } from "./crowd.ts";

/** Three times as many as may wait, at a rate that a busy machine can take. */
const clientsCount = 3_500;
const floodMs = 2_500;
/** No response may be missing, however slow the machine is. */
const timeoutMs = 20_000;
/** The memory that a client may take, with its connection. */
const clientBytesMax = 64 * 1024;
/** By then, the service has noticed the stall. */
const noticedMs = admissionDefaults.waitMs + 100;
/** In flight, those that waited less than half a second at the end, and some that came after it. */
const promisedMax = 3 * admissionDefaults.inFlightMax;
/** Lost plants would be reported by the thousand. */
const faultsMax = 10;

export async function flood(service: RunningService, stall: () => Promise<Stall>): Promise<Trial> {
  const faults: string[] = [];
  const create = async (name: string) =>
    (await service.call("POST /plants", { body: JSON.stringify({ name }) })).status;
  const residentBefore = residentBytes(service.pid);
  const held = await stall();
  const first = create("first");
  await Bun.sleep(noticedMs);
  let isSent = false;
  const order = {
    port: service.port,
    requests: [renderCreate(service.token)],
    connectionsMax: clientsCount,
    arrivalsPerSecond: (clientsCount / floodMs) * 1_000,
    durationMs: floodMs,
    deadlineMs: timeoutMs,
    timeoutMs,
  };
  const crowd = sendCrowd(order, () => {
    isSent = true;
  });
  let reads = 0;
  while (!isSent) {
    const { status } = await service.call("GET /plants?limit=1");
    if (status === 200) reads++;
    else if (status !== 503) faults.push(`a read was answered with ${status}`);
    await Bun.sleep(20);
  }
  const grownBytes = residentBytes(service.pid) - residentBefore;
  await held.release();
  const report = await crowd;

  const created = report.statuses.filter((status) => status === 201).length;
  if (created > promisedMax) faults.push(`${created} creates waited, and not ${promisedMax}`);
  if (report.refused === 0) faults.push("no create was refused");
  if (reads === 0) faults.push("no read was answered");
  for (const kind of ["refusedBare", "others", "timeouts", "lost"] as const) {
    if (report[kind] > 0) faults.push(`${kind}: ${report[kind]}`);
  }
  if (grownBytes > clientsCount * clientBytesMax) faults.push(`it grew by ${grownBytes} bytes`);

  const ledger = new Ledger();
  const note = (name: string, status: number) =>
    ledger.note({ name, state: status === 201 ? "present" : "absent" });
  note("first", await first);
  for (const [number, status] of report.statuses.entries()) {
    note(`plant ${numbered(number)}`, status);
  }
  const status = await create("last");
  if (status !== 201) faults.push(`after it a create was answered with ${status}`);
  note("last", 201);
  const list = await service.call("GET /plants?fields=id,name");
  faults.push(...ledger.audit(readList(await list.text())));
  const figures = { created, refused: report.refused, reads, "bytes grown": grownBytes };
  return { faults: faults.slice(0, faultsMax), figures };
}

/** A create of a plant that is named by the number of its request. */
export function renderCreate(token: string): string {
  const body = JSON.stringify({ name: `plant ${numberMark}` });
  const type = "Content-Type: application/json";
  return `${renderHead(token, "POST /plants")}${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

export function renderList(token: string, query: string): string {
  return `${renderHead(token, `GET /plants?${query}`)}\r\n`;
}

function renderHead(token: string, request: string): string {
  return `${request} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n`;
}

/** 0 where the system does not tell. */
export function residentBytes(pid: number): number {
  return process.platform === "linux" ? sampleProcess(pid).residentMb * 2 ** 20 : 0;
}

/** Holds up every write until it is released; reads go on. */
export interface Stall {
  release(): Promise<void>;
}

/** Like a command that writes for long beside the service, or a disk that hangs. */
export async function stallSqlite(file: string): Promise<Stall> {
  const database = new Database(file, { create: false, readwrite: true });
  database.run("BEGIN IMMEDIATE");
  return {
    async release() {
      database.run("ROLLBACK");
      database.close();
    },
  };
}

/** Like a migration or a careless session. */
export async function stallPostgres(url: string): Promise<Stall> {
  const client = new Client(url);
  await client.connect();
  await client.query("BEGIN");
  await client.query("LOCK TABLE plants IN EXCLUSIVE MODE");
  return { release: () => client.end() };
}
