/**
 * `npm run prove soak [minutes]`: the real program under a steady load of everything that clients
 * do, right and wrong, at half load. Its memory and open files are measured before and after. The
 * number of plants stays about the same. Two hours are enough to tell whether anything grows.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { makeDice } from "../../test/dice.ts";
import {
  type RunningService,
  startService,
  waitFor,
} from "../../test/end-to-end/running-service.ts";
import { auditStore } from "../audited-store.ts";
import { residentMb } from "../process-use.ts";
import { readNumbers } from "../proof.ts";

const clientsCount = 16;
const plantsPerClient = 50;

/**
 * For `npm run test:slow`. In so short a run caches still fill and compiled code comes and goes,
 * about a megabyte in all, so the bound is wide: it finds leaks of a kilobyte per request.
 */
export const shortRun = { durationMs: 10_000, warmUpMs: 4_000, heapBytesPerResponseMax: 400 };

/** Nothing is measured before it is warm, and only at rest, after collecting garbage. */
export async function soak(options: { durationMs: number; warmUpMs: number; program?: string }) {
  const variables = { BUN_OPTIONS: `--preload ${join(import.meta.dir, "collector.ts")}` };
  await using service = await startService({ program: options.program, variables });
  const faults: string[] = [];
  let responses = 0;

  /** Returns where a created plant is. */
  async function send(request: string, expected: number, init: RequestInit = {}) {
    const response = await service.call(request, init).catch((error: Error) => error);
    responses++;
    // Hours of log would fill this process's memory.
    service.output().out = "";
    const status = response instanceof Error ? response.message : response.status;
    if (status !== expected && faults.length < 100) faults.push(`${request}: ${status}`);
    if (response instanceof Error) return "/plants/0";
    await response.arrayBuffer();
    return response.headers.get("location") ?? "/plants/0";
  }

  /** Half of the requests list a page; the rest is everything else that happens in a day. */
  async function act(own: string[], dice: (sides: number) => number): Promise<void> {
    const kind = dice(21);
    const name = crypto.randomUUID();
    const body = JSON.stringify({ name });
    if (kind < 10) await send(`GET /plants?limit=20&after=${dice(1_000)}`, 200);
    else if (kind < 16) {
      const location = own.length >= plantsPerClient || kind < 13 ? own.shift() : undefined;
      const headers: HeadersInit = kind === 13 ? {} : { "idempotency-key": name };
      if (location) await send(`DELETE ${location}`, 204);
      else own.push(await send("POST /plants", 201, { headers, body }));
    } else if (kind === 16) await send("GET /plants?include=id", 200);
    else if (kind === 17) await send("GET /plants?limit=-1", 400);
    else if (kind === 18) await send("GET /plants", 401, { token: name } as RequestInit);
    else if (kind === 19 && own[0]) await send(`PUT ${own[0]}`, 200, { body });
    else await send("GET /metrics", 200, { headers: { connection: "close" } });
  }

  /** Clients that pause for as long as they wait. Each creates and deletes its own plants. */
  async function load(durationMs: number): Promise<void> {
    const endsAtMs = performance.now() + durationMs;
    const runClient = async (_: unknown, number: number) => {
      const dice = makeDice(number);
      const own: string[] = [];
      while (performance.now() < endsAtMs) {
        const startedAtMs = performance.now();
        await act(own, dice);
        await Bun.sleep(performance.now() - startedAtMs);
      }
      for (const location of own) await send(`DELETE ${location}`, 204);
    };
    await Promise.all(Array.from({ length: clientsCount }, runClient));
  }

  await load(options.warmUpMs);
  const before = await measure(service);
  responses = 0;
  await load(options.durationMs);
  const after = await measure(service);
  faults.push(...(await auditStore(service.database)));
  const heapBytesPerResponse = (after.heapBytes - before.heapBytes) / responses;
  const grownMb = after.residentMb - before.residentMb;
  const openedFiles = after.openFiles - before.openFiles;
  return { responses, faults, heapBytesPerResponse, grownMb, openedFiles };
}

async function measure(service: RunningService) {
  let heapBytes = 0;
  // Twice: what one thread frees may have kept objects of another one alive.
  for (let time = 1; time <= 2; time++) {
    // By then, work after the last response is done, such as closing a connection.
    await Bun.sleep(500);
    const output = service.output();
    output.errors = "";
    service.signal("SIGUSR2");
    heapBytes = Number(await waitFor(() => /^heap (\d+)\n/m.exec(output.errors)?.[1]));
  }
  const openFiles = readdirSync(`/proc/${service.pid}/fd`).length;
  return { heapBytes, openFiles, residentMb: residentMb(service.pid) };
}

if (import.meta.main) {
  const [minutes = 120] = readNumbers();
  process.stdout.write(`${minutes} minutes at half load\n`);
  const durationMs = minutes * 60_000;
  // Caches fill and code is compiled in the first quarter.
  const run = await soak({ durationMs: 0.75 * durationMs, warmUpMs: 0.25 * durationMs });
  const growths: [what: string, growth: number, max: number][] = [
    ["MB of resident memory", run.grownMb, 10],
    ["open files", run.openedFiles, 2],
    ["bytes of the heap per response", run.heapBytesPerResponse, 0.1],
  ];
  for (const [what, growth, max] of growths) {
    process.stdout.write(`${growth.toFixed(3)} more ${what} (bound: ${max})\n`);
  }
  for (const fault of run.faults) process.stdout.write(`fault: ${fault}\n`);
  process.stdout.write(`${run.responses} responses\n`);
  process.exit(run.faults.length > 0 || growths.some(([, growth, max]) => growth > max) ? 1 : 0);
}
