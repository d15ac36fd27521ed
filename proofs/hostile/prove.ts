/**
 * `npm run prove hostile [count] [seed] [-- --only WORDS --on WORDS]`: crowds that try to stop the
 * service or to hold up others, and what a quiet user notices; then ten times the load that the
 * service can take (`--only overload`).
 */
import { join } from "node:path";
import { type Engine, makePlace } from "../../testing/audited-store.ts";
import { fillStore } from "../../testing/filled-store.ts";
import { audience, sign, startIssuer } from "../../testing/openid-issuer.ts";
import { makeToken, startService } from "../../testing/running-service.ts";
import { residentMb } from "../process-use.ts";
import { prove, type Trial, takeOption } from "../proof.ts";
import { type Crowd, crowds, longPlant, overloads } from "./crowds.ts";
import type { FloodOrder, FloodReport } from "./flooder.ts";
import { startQuietUser, summarize } from "./quiet-user.ts";

/** How the service runs. */
const setups: Readonly<Record<string, [engine: Engine, threads: number, instances: number]>> = {
  "sqlite, 1 thread": ["sqlite", 1, 1],
  "sqlite, 2 threads": ["sqlite", 2, 1],
  "postgres, 1 instance": ["postgres", 1, 1],
  "postgres, 2 instances": ["postgres", 1, 2],
};

/** What a quiet user may wait: the median, and at most. */
const limitsMs = { healthz: [50, 250], get: [50, 250], create: [150, 500] } as const;
const usualMs = 6_000;
/** `docker stop` kills after this time. */
const stopMsMax = 10_000;
/** As in deploy/Containerfile: the runtime collects harder near the limit. */
const containerVariables = { BUN_JSC_forceRAMSize: String(256 * 1_024 * 1_024) };
const [peakMs, overloadMs, keptShareMin] = [4_000, 10_000, 0.8];

/** A crowd against the service, and a quiet user of another garden. */
export async function tryCrowd(name: string, setup: string, program?: string): Promise<Trial> {
  const crowd = crowds[name] as Crowd;
  const { connections = 600, users = 1, durationMs = usualMs } = crowd;
  const { isHeavy, grownMbMax = Infinity } = crowd;
  const [engine, threads, instances] = setups[setup] as (typeof setups)[string];
  await using stack = new AsyncDisposableStack();
  const place = stack.use(await makePlace(engine));
  const quiet = await makeToken(place, "quiet");
  const writing = await makeToken(place, "writer", "--garden", "home");
  let tokens: string[] = [];
  while (tokens.length < users) {
    tokens.push(await makeToken(place, `hostile${tokens.length}`, "--garden", "home"));
  }
  await fillStore(place.database, crowd.plants ?? 0, crowd.plantName);
  const args = ["--threads", String(threads)];
  const variables = grownMbMax < Infinity ? containerVariables : {};
  if (crowd.isForging) {
    const issuer = stack.adopt(startIssuer(), ({ stop }) => stop());
    args.push("--jwt-issuer", issuer.url, "--jwt-audience", audience);
    // Its last characters are each request's own.
    const jwt = await sign(await issuer.makeKey(), issuer.claims(Date.now()));
    tokens = [jwt.slice(0, -12)];
  }
  const options = { args, database: place.database, program, variables };
  const start = async () => stack.use(await startService(options));
  const services = await Promise.all(Array.from({ length: instances }, start));
  const ports = services.map(({ port }) => port);
  const user = await startQuietUser(services, quiet);
  const writer = crowd.isWritten && (await startQuietUser(services, writing, longPlant));

  const mostMb = () => Math.max(...services.map(({ pid }) => residentMb(pid, "VmHWM")));
  const beforeMb = mostMb();
  // A crowd that sends without rest has less priority than the service: clients on other machines
  // wouldn't take its processors either.
  const nice = crowd.isWaiting ? [] : ["nice", "-n", "10"];
  const flooder = startFlooder({ crowd: name, connections, ports, tokens }, nice);
  const ends = services.map(({ exited }) => exited);
  const died = await Promise.race([Bun.sleep(durationMs), ...ends]);
  if (died !== undefined) return { faults: ["the service died"], figures: {} };
  const { times, statuses } = await user.stop();
  if (writer) await writer.stop();
  const grownMb = Math.round(mostMb() - beforeMb);
  for (const { signal } of services) signal("SIGTERM");
  const isLate = !(await Promise.race([Promise.all(ends), Bun.sleep(stopMsMax)]));
  const report = await flooder.stop();

  const faults: string[] = [];
  const cells = [name, setup];
  for (const call of ["healthz", "get", "create"] as const) {
    const [median, worst] = limitsMs[call];
    const [medianMax, worstMax] = isHeavy ? [5 * median, Infinity] : [median, worst];
    const { medianMs, worstMs } = summarize(times[call]);
    if (medianMs > medianMax) faults.push(`${call} took ${medianMs.toFixed(0)} ms in the median`);
    if (worstMs > worstMax) faults.push(`${call} took ${worstMs.toFixed(0)} ms`);
    cells.push(`${call} ${medianMs.toFixed(0)} / ${worstMs.toFixed(0)}`);
  }
  if (Object.keys(statuses).some((status) => !status.startsWith("2"))) {
    faults.push(`the quiet user got ${render(statuses)}`);
  }
  if (isLate) faults.push("a stop took too long");
  if (grownMb > grownMbMax) faults.push(`it grew by ${grownMb} MB`);
  cells.push(`+${grownMb} MB`, render(statuses));
  return { faults, figures: {}, row: `${cells.join(" | ")} | crowd: ${render(report.statuses)}` };
}

/**
 * Finds the highest throughput in time, and offers ten times as many clients, which wait as
 * `Retry-After` says. Most of the throughput is kept.
 */
async function tryOverload(name: string, engine: Engine): Promise<Trial> {
  await using place = await makePlace(engine);
  const token = await makeToken(place, "hostile", "--garden", "home");
  await fillStore(place.database, 3_000);
  await using service = await startService({ database: place.database });
  const measure = async (connections: number, durationMs: number, isPatient = false) => {
    const order = { crowd: name, connections, ports: [service.port], tokens: [token], isPatient };
    const flooder = startFlooder(order);
    await Bun.sleep(durationMs);
    return { connections, ...(await flooder.stop()) };
  };
  let peak = await measure(64, peakMs);
  for (const connections of [16, 64, 256]) {
    const measured = await measure(connections, peakMs);
    if (measured.goodPerSecond > peak.goodPerSecond) peak = measured;
  }
  const { goodPerSecond, statuses } = await measure(10 * peak.connections, overloadMs, true);
  const percent = Math.round((100 * goodPerSecond) / peak.goodPerSecond);
  const faults = percent < 100 * keptShareMin ? [`only ${percent} % of the peak is kept`] : [];
  const { 200: _, 201: __, 503: ___, ...others } = statuses;
  if (Object.keys(others).length > 0) faults.push(`other responses: ${render(others)}`);
  const cells = ["overload", name, engine, `${percent} % of the peak`, render(statuses)];
  return { faults, figures: {}, row: cells.join(" | ") };
}

function render(statuses: Readonly<Record<string, number>>): string {
  const parts = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`);
  return parts.join(", ");
}

function startFlooder(order: FloodOrder, wrapper: readonly string[] = []) {
  const command = [process.execPath, join(import.meta.dir, "flooder.ts"), JSON.stringify(order)];
  const child = Bun.spawn([...wrapper, ...command], { stdio: ["pipe", "pipe", "inherit"] });
  return {
    async stop(): Promise<FloodReport> {
      child.stdin.end();
      return JSON.parse(await new Response(child.stdout).text());
    },
  };
}

if (import.meta.main) {
  const trials: [what: string, on: string, run: () => Promise<Trial>][] = [];
  for (const crowd of Object.keys(crowds)) {
    for (const setup of Object.keys(setups)) {
      trials.push([crowd, setup, () => tryCrowd(crowd, setup)]);
    }
  }
  for (const name of Object.keys(overloads)) {
    for (const engine of ["sqlite", "postgres"] as const) {
      trials.push([`overload, ${name}`, engine, () => tryOverload(name, engine)]);
    }
  }
  const [only = "", on = ""] = [takeOption("only"), takeOption("on")];
  const chosen = trials.filter((trial) => trial[0].includes(only) && trial[1].includes(on));
  if (chosen.length === 0) throw new Error("There is no such crowd.");

  await prove({
    trials: "crowds; median / worst ms of the quiet user's calls",
    count: chosen.length,
    areAllDifferent: true,
    run: (seed) => (chosen[seed % chosen.length] as (typeof chosen)[number])[2](),
  });
}
