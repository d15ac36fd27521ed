/**
 * `npm run walk -- [CHECKOUT] [--seed N] [--count N] [--on LAYOUT]`: sends the same random requests
 * to the program of another checkout and to the one in place, and prints where responses, log lines
 * or counters differ. Without a checkout, the program in place is compared with itself. The other
 * checkout needs its packages.
 */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { makePlace } from "../../testing/audited-store.ts";
import { seed as randomSeed } from "../../testing/property.ts";
import { runProgram, startService } from "../../testing/running-service.ts";
import { Walk } from "./steps.ts";
import { grants } from "./values.ts";
import { type Step, Wire } from "./wire.ts";

/** What a service is started with. Both engines get the same requests. */
const layouts = {
  sqlite: { engine: "sqlite", base: "", args: [] },
  postgres: { engine: "postgres", base: "", args: [] },
  limited: {
    engine: "sqlite",
    base: "/garden/v1",
    args: [
      ...["--base-path", "/garden/v1", "--garden-plants-max", "30", "--rate-limit", "600/d"],
      ...["--events", "off", "--cors-origins", "https://a.example,https://b.example"],
    ],
  },
} as const;
type Layout = keyof typeof layouts;

const root = join(import.meta.dir, "../..");
const shownMax = 6;
const shownCharacters = 600;

interface Recording {
  readonly steps: readonly Step[];
  readonly responses: readonly string[];
  /** What the service logged and counted, line by line. */
  readonly log: readonly string[];
}

/** Takes the walk with the program of a checkout: a new one, or the steps of another recording. */
async function record(
  checkout: string,
  layout: Layout,
  nextStep: (index: number, response: string) => Step | undefined,
): Promise<Recording> {
  const { engine, args } = layouts[layout];
  await using place = await makePlace(engine);
  const { database } = place;
  const program = join(checkout, "src/main.ts");
  const tokens = await createTokens(program, database);
  await using service = await startService({
    database,
    program,
    args: ["--threads", "1", "--log", "json", ...args],
  });
  const wire = new Wire(service.port, tokens);
  const steps: Step[] = [];
  const responses: string[] = [];
  for (let step = nextStep(0, ""); step; step = nextStep(steps.length, responses.at(-1) ?? "")) {
    steps.push(step);
    responses.push(await wire.send(step));
  }
  const metrics = await (await service.call(`GET ${layouts[layout].base}/metrics`)).text();
  wire.close();
  service.signal("SIGTERM");
  await service.exited;
  return {
    steps,
    responses,
    log: [...describeLog(service.output().out), ...findCounters(metrics)],
  };
}

async function createTokens(program: string, database: string): Promise<Map<string, string>> {
  const variables = { PLANTSTORE_DATABASE: database };
  const tokens = new Map<string, string>();
  for (const [name, args] of Object.entries(grants)) {
    const command = ["token", "create", ...args, "--json"];
    const { out, errors } = await runProgram(command, variables, program);
    if (out === "") throw new Error(errors);
    const { token, id } = JSON.parse(out);
    tokens.set(name, token);
    if (name === "revoked") await runProgram(["token", "revoke", id], variables, program);
  }
  return tokens;
}

/** Requests by their ids, because a client that leaves may be noticed late. */
function describeLog(out: string): string[] {
  const lines = Bun.JSONL.parse(out) as Record<string, unknown>[];
  return lines
    .filter(({ event }) => event === "request" || event === "request failed")
    .map(({ time, durationMs, tokenId, requestId, ...line }) =>
      JSON.stringify({
        ...line,
        requestId: String(requestId).startsWith("w-") ? requestId : "(new id)",
        hasToken: tokenId !== undefined,
      }),
    )
    .toSorted();
}

function findCounters(metrics: string): string[] {
  return metrics.split("\n").filter((line) => /^plantstore_\w+_total\b/.test(line));
}

/** What differs, each with the request that it's about. */
function compare(before: Recording, after: Recording): string[] {
  const differences = before.responses.flatMap((response, index) => {
    const other = after.responses[index] ?? "";
    if (response === other) return [];
    const request = Buffer.from(before.steps[index]?.text ?? "", "latin1").toString();
    return [`request ${index}:\n${cut(request)}\n${showChange(response, other)}`];
  });
  const [logged, loggedNow] = [count(before.log), count(after.log)];
  for (const line of new Set([...before.log, ...after.log])) {
    const [times = 0, timesNow = 0] = [logged.get(line), loggedNow.get(line)];
    if (times !== timesNow) differences.push(`logged ${times} times, now ${timesNow}: ${line}`);
  }
  return differences;
}

function count(lines: readonly string[]): Map<string, number> {
  return new Map(
    [...Map.groupBy(lines, (line) => line)].map(([line, same]) => [line, same.length]),
  );
}

/** The status of a response that isn't interim. */
function findStatus(response: string): string {
  return /^HTTP\/1\.1 ([2-5]\d\d)/m.exec(response)?.[1] ?? "none";
}

/** The lines that are only in one of them. */
function showChange(before: string, after: string): string {
  const [old, current] = [before.split("\n"), after.split("\n")];
  const gone = old.filter((line) => !current.includes(line)).map((line) => `  - ${cut(line)}`);
  const added = current.filter((line) => !old.includes(line)).map((line) => `  + ${cut(line)}`);
  return [...gone, ...added].join("\n");
}

function cut(text: string): string {
  return text.length > shownCharacters ? `${text.slice(0, shownCharacters)}…` : text.trimEnd();
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: "string" }, count: { type: "string" }, on: { type: "string" } },
});
const seed = values.seed === undefined ? randomSeed : Number(values.seed);
const stepsCount = Number(values.count ?? 4_000);
const other = resolve(positionals[0] ?? root);
const chosen = (Object.keys(layouts) as Layout[]).filter((each) => (values.on ?? each) === each);
const print = (text: string) => process.stdout.write(`${text}\n`);
if (!Number.isSafeInteger(seed + stepsCount) || chosen.length === 0) {
  throw new Error("Give --seed and --count as numbers, and --on as one of the layouts.");
}

print(`${stepsCount} requests on ${chosen.join(", ")}, seed ${seed}: ${other} and ${root}`);
const results = await Promise.all(
  chosen.map(async (layout) => {
    const walk = new Walk(seed, layouts[layout].base);
    const before = await record(other, layout, (index, response) => {
      walk.note(response);
      return index < stepsCount ? walk.next() : undefined;
    });
    const after = await record(root, layout, (index) => before.steps[index]);
    const differences = compare(before, after);
    for (const each of differences.slice(0, shownMax)) print(`\n${layout}, ${each}`);
    const statuses = count(before.responses.map(findStatus)).entries().toArray().toSorted();
    const seen = statuses.map(([status, times]) => `${times} × ${status}`).join(", ");
    print(`${layout}: ${differences.length} differences; ${seen}`);
    return differences.length;
  }),
);
const isEqual = results.every((differences) => differences === 0);
if (!isEqual) print(`To repeat it: --seed ${seed} --count ${stepsCount}`);
process.exit(isEqual ? 0 : 1);
