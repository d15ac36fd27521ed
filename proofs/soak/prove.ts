/**
 * `npm run prove soak [minutes]`: the real program under a steady load of everything that clients
 * do, right and wrong, at half load, while its memory and open files are sampled. The number of
 * plants stays about the same. Two hours are enough to tell whether anything grows.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { auditStore } from "../../testing/audited-store.ts";
import { makeDice } from "../../testing/dice.ts";
import { type RunningService, startService, waitFor } from "../../testing/running-service.ts";
import { residentMb } from "../process-use.ts";
import { readNumbers } from "../proof.ts";

interface Sample {
  readonly atMs: number;
  readonly residentMb: number;
  readonly openFiles: number;
  /** Since the last sample. */
  readonly responses: number;
}

const clientsCount = 16;
const plantsPerClient = 50;

/**
 * For `npm run test:slow`. In so short a run caches still fill and compiled code comes and goes,
 * about a megabyte in all, so the bound is wide: it finds leaks of a kilobyte per request.
 */
export const shortRun = { durationMs: 10_000, warmUpMs: 4_000, heapBytesPerResponseMax: 400 };

/** Nothing is measured before it is warm, and the heap only after collecting garbage. */
export async function soak(options: { durationMs: number; warmUpMs: number; program?: string }) {
  const variables = { BUN_OPTIONS: `--preload ${join(import.meta.dir, "collector.ts")}` };
  await using service = await startService({ program: options.program, variables });
  const faults: string[] = [];
  let responses = 0;
  let refused = 0;

  /** Returns where a created plant is. */
  async function send(request: string, expected: number, init: RequestInit = {}) {
    const response = await service.call(request, init).catch((error: Error) => error);
    responses++;
    const status = response instanceof Error ? response.message : response.status;
    if (status === 503) refused++;
    else if (status !== expected && faults.length < 100) faults.push(`${request}: ${status}`);
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
  const heapBefore = await measureHeap(service);
  const samples: Sample[] = [];
  const before = responses;
  let counted = responses;
  const sampling = setInterval(() => {
    // Hours of log would fill this process's memory.
    service.output().out = "";
    samples.push({
      atMs: performance.now(),
      residentMb: residentMb(service.pid),
      openFiles: readdirSync(`/proc/${service.pid}/fd`).length,
      responses: responses - counted,
    });
    counted = responses;
  }, 1_000);
  await load(options.durationMs);
  clearInterval(sampling);
  const measured = responses - before;
  const heapBytesPerResponse = ((await measureHeap(service)) - heapBefore) / measured;
  faults.push(...(await auditStore(service.database)));
  return { responses: measured, refused, faults, samples, heapBytesPerResponse };
}

async function measureHeap(service: RunningService): Promise<number> {
  let size = 0;
  // Twice: what one thread frees may have kept objects of another one alive.
  for (let time = 1; time <= 2; time++) {
    // By then, work after the last response is done, such as closing a connection.
    await Bun.sleep(500);
    const output = service.output();
    output.errors = "";
    service.signal("SIGUSR2");
    size = Number(await waitFor(() => /^heap (\d+)\n/m.exec(output.errors)?.[1]));
  }
  return size;
}

/** By how much a value grew in an hour: from the first half of the samples to the second. */
function growthPerHour(samples: readonly Sample[], sign: "residentMb" | "openFiles"): number {
  const middle = samples.length >> 1;
  const [early, late] = [samples.slice(0, middle), samples.slice(middle)];
  const mean = (part: readonly Sample[], of: keyof Sample) =>
    part.reduce((sum, sample) => sum + sample[of], 0) / part.length;
  const hours = (mean(late, "atMs") - mean(early, "atMs")) / 3_600_000;
  return (mean(late, sign) - mean(early, sign)) / hours;
}

if (import.meta.main) {
  const [minutes = 120] = readNumbers();
  process.stdout.write(`${minutes} minutes at half load\n`);
  const run = await soak({ durationMs: minutes * 60_000, warmUpMs: 60_000 });
  /** Caches fill and code is compiled in the first quarter. */
  const settled = run.samples.slice(run.samples.length >> 2);
  // With little to do, the service holds less memory, so only seconds with the usual load count.
  const usual = settled.map(({ responses }) => responses).toSorted((a, b) => a - b);
  const busyMin = 0.75 * (usual[usual.length >> 1] ?? 0);
  const busy = settled.filter(({ responses }) => responses >= busyMin);
  process.stdout.write(`${busy.length} of ${settled.length} seconds had the usual load\n`);
  const growths: [what: string, growth: number, max: number][] = [
    ["MB of resident memory an hour", growthPerHour(busy, "residentMb"), 2],
    ["open files an hour", growthPerHour(busy, "openFiles"), 2],
    ["bytes of the heap per response", run.heapBytesPerResponse, 0.1],
  ];
  for (const [what, growth, max] of growths) {
    process.stdout.write(`${growth.toFixed(3)} more ${what} (bound: ${max})\n`);
  }
  if (run.refused > 0) run.faults.push(`${run.refused} requests were refused`);
  for (const fault of run.faults) process.stdout.write(`fault: ${fault}\n`);
  process.stdout.write(`${run.responses} responses\n`);
  process.exit(run.faults.length > 0 || growths.some(([, growth, max]) => growth > max) ? 1 : 0);
}
