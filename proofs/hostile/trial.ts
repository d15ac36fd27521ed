/** A crowd against the real service, and what a quiet user of another garden notices. */
import { join } from "node:path";
import {
  type RunningService,
  runProgram,
  startService,
} from "../../test/end-to-end/running-service.ts";
import { audience, sign, startIssuer } from "../../test/openid-issuer.ts";
import { type Engine, makePlace } from "../audited-store.ts";
import { residentMb } from "../process-growth.ts";
import { type Crowd, libraryMark } from "./crowds.ts";
import type { FloodOrder, FloodReport } from "./flooder.ts";
import { type CallName, calls, QuietUser, type Seen } from "./quiet-user.ts";

/** How the service runs. */
export const setups = {
  "sqlite, 1 thread": { engine: "sqlite", threads: 1, instances: 1 },
  "sqlite, 2 threads": { engine: "sqlite", threads: 2, instances: 1 },
  "postgres, 1 instance": { engine: "postgres", threads: 1, instances: 1 },
  "postgres, 2 instances": { engine: "postgres", threads: 1, instances: 2 },
} as const satisfies Record<string, { engine: Engine; threads: number; instances: number }>;
export type SetupName = keyof typeof setups;

export interface TrialOptions {
  readonly connections?: number;
  readonly durationMs?: number;
  /** Another program than the real one. */
  readonly program?: string | undefined;
  /** How many times the limits a quiet user may wait, where other tests run at the same time. */
  readonly leniency?: number;
}

export interface TrialResult extends Seen {
  readonly hasLived: boolean;
  readonly crowd: FloodReport;
  readonly grownMb: number;
  /** How long a stop took while the crowd went on. */
  readonly stopMs: number;
  /** What is wrong. Empty: the service has kept its promises. */
  readonly faults: readonly string[];
}

/** What a quiet user may wait: the median, and at most. */
const limitsMs: Readonly<Record<CallName, readonly [median: number, worst: number]>> = {
  healthz: [50, 250],
  get: [50, 250],
  create: [150, 500],
};
const usualMs = 6_000;
/** `docker stop` kills after this time. */
const stopMsMax = 10_000;
/** As in deploy/Containerfile: the runtime collects harder near the limit. */
const containerVariables = { BUN_JSC_forceRAMSize: String(256 * 1_024 * 1_024) };
/** The service and the flooder may open about 20,000 files each. */
const connectionsMax = 19_000;
/**
 * With more connections to one address, the kernel searches long for a free port. Then the service
 * listens on all addresses of this machine, and the crowd uses several.
 */
const addressConnectionsMax = 8_000;
/** Less than a mebibyte, even of long names. */
const bulkPlantsMax = 1_000;
const longPlant = `{"name":"${"🌱".repeat(200)}"}`;

export async function tryCrowd(
  crowd: Crowd,
  setupName: SetupName,
  { program, leniency = 1, ...options }: TrialOptions = {},
): Promise<TrialResult> {
  const { connections: requested = crowd.connections, durationMs = crowd.durationMs ?? usualMs } =
    options;
  const { engine, threads, instances } = setups[setupName];
  const connections = Math.min(requested, connectionsMax * instances);
  const addresses = Math.ceil(connections / instances / addressConnectionsMax);
  await using place = await makePlace(engine);
  const { database } = place;
  const makeToken = async (user: string, garden: string) => {
    const args = ["token", "create", user, "--garden", garden];
    const made = await runProgram(args, { PLANTSTORE_DATABASE: database }, program);
    if (made.exitCode !== 0) throw new Error(made.errors);
    return made.out.trim();
  };
  const quiet = await makeToken("quiet", "quiet");
  const writing = crowd.isWritten ? await makeToken("writer", "hostile") : undefined;
  const tokens: string[] = [];
  for (let user = 0; user < (crowd.users ?? 1); user++) {
    tokens.push(await makeToken(`hostile${user}`, "hostile"));
  }
  await using stack = new AsyncDisposableStack();
  const forged = crowd.hasForgedJwts ? await forgeJwts(stack, tokens) : [];
  const services: RunningService[] = [];
  for (let instance = 0; instance < instances; instance++) {
    const host = addresses === 1 ? "127.0.0.1" : "0.0.0.0";
    const args = ["--threads", String(threads), "--host", host, ...forged];
    const variables = crowd.grownMbMax === undefined ? {} : containerVariables;
    services.push(stack.use(await startService({ args, database, program, variables })));
  }
  await fill(services[0] as RunningService, tokens[0] as string, crowd);
  const library = await prepareLibrary(services, crowd);
  const ports = services.map(({ port }) => port);
  const user = await QuietUser.start(ports, quiet);
  const writer = writing && (await QuietUser.start(ports, writing, longPlant));

  let hasLived = true;
  for (const { exited } of services) {
    exited.then(() => {
      hasLived = false;
    });
  }
  const beforeMb = largestMb(services);
  let peakMb = beforeMb;
  const flooder = startFlooder(crowd, {
    crowd: crowd.name,
    connections,
    ports,
    addresses,
    tokens,
    library,
  });
  const endsAtMs = performance.now() + durationMs;
  while (hasLived && performance.now() < endsAtMs) {
    await Bun.sleep(100);
    if (hasLived) peakMb = Math.max(peakMb, largestMb(services));
    // The log would fill the memory of this process.
    for (const service of services) service.output().out = "";
  }
  const seen = await user.stop();
  if (writer) await writer.stop();
  const stillLives = hasLived;
  const stopMs = await stopAll(services);
  const report = await flooder.stop();
  const grownMb = peakMb - beforeMb;
  const result = { ...seen, hasLived: stillLives, crowd: report, grownMb, stopMs };
  return { ...result, faults: findFaults(crowd, result, leniency) };
}

/** Fills `tokens` with the crowd's JWTs. Returns the arguments that make the service trust them. */
async function forgeJwts(stack: AsyncDisposableStack, tokens: string[]): Promise<string[]> {
  const issuer = stack.adopt(startIssuer(), ({ stop }) => stop());
  const jwt = await sign(await issuer.makeKey(), issuer.claims(Date.now()));
  // Its last characters are each request's own.
  tokens.splice(0, tokens.length, jwt.slice(0, -12));
  return ["--jwt-issuer", issuer.url, "--jwt-audience", audience];
}

/** How long the slowest service took to end after SIGTERM. Those that hang are killed. */
async function stopAll(services: readonly RunningService[]): Promise<number> {
  const startedAtMs = performance.now();
  for (const { signal } of services) signal("SIGTERM");
  const hung = setTimeout(() => {
    for (const { signal } of services) signal("SIGKILL");
  }, 3 * stopMsMax);
  await Promise.all(services.map(({ exited }) => exited));
  clearTimeout(hung);
  return performance.now() - startedAtMs;
}

function findFaults(
  {
    grownMbMax = Number.POSITIVE_INFINITY,
    openMsMax = Number.POSITIVE_INFINITY,
    medianMsMax,
  }: Crowd,
  { hasLived, times, statuses, grownMb, stopMs, crowd }: Omit<TrialResult, "faults">,
  leniency: number,
): string[] {
  if (!hasLived) return ["the service died"];
  const faults: string[] = [];
  for (const name of calls) {
    const [usualMedian, usualWorst] = limitsMs[name];
    const ownMedian = medianMsMax && (medianMsMax * usualMedian) / limitsMs.healthz[0];
    const median = (ownMedian ?? usualMedian) * leniency;
    const worst = medianMsMax === undefined ? usualWorst * leniency : Number.POSITIVE_INFINITY;
    const { medianMs, worstMs } = times[name];
    if (medianMs > median) faults.push(`${name} took ${medianMs.toFixed(0)} ms in the median`);
    if (worstMs > worst) faults.push(`${name} took ${worstMs.toFixed(0)} ms`);
  }
  for (const [status, count] of Object.entries(statuses)) {
    if (!status.startsWith("2")) faults.push(`the quiet user got ${count} × ${status}`);
  }
  if (stopMs > stopMsMax) faults.push(`a stop took ${stopMs.toFixed(0)} ms`);
  if (grownMb > grownMbMax) faults.push(`it grew by ${grownMb.toFixed(0)} MB`);
  if (crowd.openMs > openMsMax) faults.push(`a connection was open for ${crowd.openMs} ms`);
  return faults;
}

function largestMb(services: readonly RunningService[]): number {
  try {
    return Math.max(...services.map(({ pid }) => residentMb(pid) || 0));
  } catch {
    // It has ended a moment ago.
    return 0;
  }
}

async function fill(
  { call }: RunningService,
  token: string,
  { plants = 0, plantName: name = "Fern" }: Crowd,
): Promise<void> {
  for (let from = 0; from < plants; from += bulkPlantsMax) {
    const length = Math.min(bulkPlantsMax, plants - from);
    const part = Array.from({ length }, (_, at) => ({ name, id: from + at }));
    const { ok } = await call("POST /plants/bulk", { token, body: JSON.stringify(part) });
    if (!ok) throw new Error("The garden could not be filled.");
  }
}

/** Returns the library's path. The first request of each process bundles it, which takes long. */
async function prepareLibrary(services: readonly RunningService[], { send }: Crowd) {
  if (!send("", 0).includes(libraryMark)) return "";
  let path = "";
  for (const { call } of services) {
    const page = await (await call("GET /docs")).text();
    [path = ""] = /assets\/reference-library-[^"]+/.exec(page) ?? [];
    if (!(await call(`GET /${path}`)).ok) throw new Error("The library was not found.");
  }
  return `/${path}`;
}

/**
 * A crowd that sends without rest has less priority than the service: clients on other machines
 * wouldn't take its processors either.
 */
function startFlooder({ next, comesBackAtOnce }: Crowd, order: FloodOrder) {
  const file = join(import.meta.dir, "flooder.ts");
  const command = [process.execPath, file, JSON.stringify(order)];
  const child = Bun.spawn(
    next === "wait" || comesBackAtOnce ? command : ["nice", "-n", "10", ...command],
    {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  return {
    async stop(): Promise<FloodReport> {
      child.stdin.end();
      return JSON.parse(await new Response(child.stdout).text());
    },
  };
}
