/** Slow clients against the real service: the memory that they take, and what others notice. */
import { join } from "node:path";
import { issueToken } from "../../../src/auth/opaque-token.ts";
import { openStorage } from "../../../src/storage/open.ts";
import type { RunningService } from "../../end-to-end/running-service.ts";
import { sampleProcess, watchThreads } from "../process-growth.ts";
import type { SlowKind, SlowReport } from "./slow-clients.ts";

/** The list is 7.4 MB: more than the kernel buffers for a connection. */
const plantsCount = 6_000;
const plant = JSON.stringify({ name: "🌱".repeat(200) });
const bulkCount = 1_000;
const callEveryMs = 50;
const warmUpMs = 500;
const arrivalMsMax = 60_000;

export interface Impact {
  readonly open: number;
  readonly answered: number;
  readonly longestMs: number;
  readonly grownMb: number;
  readonly healthMsMax: number;
  readonly busyMsMax: number;
  readonly calls: number;
  /** Other callers' requests that failed. */
  readonly faults: readonly string[];
}

/** Fills the garden of the first token with long plants. */
export async function fillGarden(service: RunningService): Promise<void> {
  const headers = { "content-type": "application/jsonl" };
  const body = `${plant}\n`.repeat(bulkCount);
  for (let made = 0; made < plantsCount; made += bulkCount) {
    const { status } = await service.call("POST /plants/bulk", { headers, body });
    if (status !== 200) throw new Error(`A bulk got ${status}.`);
  }
}

export async function makeTokens(
  { database }: RunningService,
  owners: readonly { readonly user: string; readonly garden?: string }[],
): Promise<string[]> {
  const storage = await openStorage(database, { isServing: false });
  const issued = await Promise.all(owners.map((each) => issueToken(storage, each, Date.now())));
  await storage.close();
  return issued.map(({ token }) => token);
}

/** Keeps slow clients for a while, and meanwhile uses the service as others do. */
export async function attack(
  service: RunningService,
  kind: SlowKind,
  count: number,
  holdMs: number,
): Promise<Impact> {
  const slow = ["a", "b", "c", "d"].map((user) => ({ user, garden: "gardener" }));
  const [other = "", ...tokens] = await makeTokens(service, [{ user: "other" }, ...slow]);
  await useService(service, other, warmUpMs);
  const beforeMb = sampleProcess(service.pid).residentMb;
  const script = join(import.meta.dir, "slow-clients.ts");
  await using clients = Bun.spawn(
    [process.execPath, script, String(service.port), kind, String(count)],
    { env: { ...process.env, TOKENS: tokens.join() }, stdout: "pipe" },
  );
  let report: SlowReport = { open: 0, answered: 0, longestMs: 0 };
  let peakMb = 0;
  const reading = readReports(clients.stdout, (each) => {
    report = each;
    peakMb = Math.max(peakMb, sampleProcess(service.pid).residentMb);
  });
  const endsAtMs = performance.now() + arrivalMsMax;
  const hasArrived = () =>
    kind === "readers" || kind === "bulks"
      ? report.answered >= count
      : report.open + report.answered >= count;
  while (!hasArrived() && performance.now() < endsAtMs) await Bun.sleep(100);
  const used = await useService(service, other, holdMs);
  clients.kill("SIGKILL");
  await reading;
  return { ...report, ...used, grownMb: peakMb - beforeMb };
}

export async function useService(service: RunningService, token: string, durationMs: number) {
  const faults: string[] = [];
  const endsAtMs = performance.now() + durationMs;
  let healthMsMax = 0;
  /** The longest that a thread computed while somebody waited. */
  let busyMsMax = 0;
  let calls = 0;
  const call = async (request: string, body?: string) => {
    const startedAtMs = performance.now();
    const readBusyMs = watchThreads(service.pid);
    const { status } = await service.call(request, { token, ...(body && { body }) });
    calls++;
    if (status >= 300) faults.push(`${request} got ${status}`);
    busyMsMax = Math.max(busyMsMax, readBusyMs());
    return performance.now() - startedAtMs;
  };
  while (performance.now() < endsAtMs) {
    healthMsMax = Math.max(healthMsMax, await call("GET /healthz"));
    await call("POST /plants", '{"name":"Fern"}');
    await call("GET /plants?limit=20");
    await Bun.sleep(callEveryMs);
  }
  return { healthMsMax, busyMsMax, calls, faults };
}

async function readReports(
  stream: ReadableStream<Uint8Array>,
  take: (report: SlowReport) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    for (const line of decoder.decode(chunk).trimEnd().split("\n")) take(JSON.parse(line));
  }
}
