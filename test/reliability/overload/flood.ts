/**
 * A flood of creates while the storage is stalled: a bounded number waits, the rest is refused at
 * once, and reads go on. Afterwards the service is as before, with exactly the confirmed plants.
 */
import { Database } from "bun:sqlite";
import { Client } from "pg";
import { admissionDefaults } from "../../../src/http/admission.ts";
import type { RunningService } from "../../end-to-end/running-service.ts";
import { Ledger } from "../ledger.ts";
import { listPlants } from "../plant-client.ts";
import { residentMb } from "../process-growth.ts";
import { numbered, renderCreate, sendCrowd } from "./crowd.ts";

/** Three times as many as may wait. */
const clients = 3_500;
const durationMs = 2_500;
/** The memory that a client may take, with its connection. */
const clientBytesMax = 64 * 1024;
/** By then, the service has noticed the stall. */
const noticedMs = admissionDefaults.waitMs + 100;
/** In flight, those that waited less than half a second at the end, and some that came after it. */
const promisedMax = 3 * admissionDefaults.inFlightMax;

/** Returns what went wrong. */
export async function flood(service: RunningService, stall: () => Promise<Stall>) {
  const faults: string[] = [];
  const create = async (name: string) =>
    (await service.call("POST /plants", { body: JSON.stringify({ name }) })).status;
  const { port, token, pid } = service;
  const beforeMb = residentMb(pid);
  const held = await stall();
  const first = create("first");
  await Bun.sleep(noticedMs);
  let isSent = false;
  const order = { port, requests: [renderCreate(token)], clients, durationMs, pauseMs: durationMs };
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
  const grownBytes = (residentMb(pid) - beforeMb) * 2 ** 20;
  await held.release();
  const report = await crowd;

  const created = report.statuses.filter((status) => status === 201).length;
  if (created > promisedMax) faults.push(`${created} creates waited, and not ${promisedMax}`);
  if (report.refused === 0) faults.push("no create was refused");
  if (reads === 0) faults.push("no read was answered");
  if (report.others > 0) faults.push(`${report.others} other responses`);
  if (report.lost > 0) faults.push(`${report.lost} connections were lost`);
  if (grownBytes > clients * clientBytesMax) faults.push(`it grew by ${grownBytes} bytes`);

  const ledger = new Ledger();
  const note = (name: string, status: number) =>
    ledger.note({ name, state: status === 201 ? "present" : "absent" });
  note("first", await first);
  report.statuses.forEach((status, number) => {
    note(`plant ${numbered(number)}`, status);
  });
  const last = await create("last");
  if (last !== 201) faults.push(`after it a create was answered with ${last}`);
  note("last", 201);
  const plants = await listPlants(service, token);
  return [...faults, ...ledger.audit(plants.map(({ id, name }) => ({ id, name }))).slice(0, 10)];
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
