/** Drives one server with wrk and reads the figures. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runToEnd } from "../process/children.ts";
import { type Mark, renderAction, type Share, splitAtMarks } from "./action.ts";

export interface Load {
  readonly host: string;
  readonly shares: readonly Share[];
  readonly connections: number;
  readonly durationSeconds: number;
  /** The instances that are driven at the same time take turns in the sequence of requests. */
  readonly instances: number;
  /** The place in that sequence to start from. */
  readonly offset: number;
  readonly tokensPath: string;
  /** The number of the first plant, how many are stored, and how many numbers there are. */
  readonly first: number;
  readonly plants: number;
  readonly numbers: number;
  /** Values of the right length for every mark. */
  readonly sample: Readonly<Record<Mark, string>>;
}

export interface Figures {
  /** Responses with the expected status. */
  readonly responses: number;
  readonly responsesPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Responses with another status, lost connections and timeouts. */
  readonly faults: number;
  /** The place after the last one that was used. */
  readonly used: number;
  /** What wrk itself took. */
  readonly loadCpuSeconds: number;
}

interface RawFigures {
  readonly requests: number;
  readonly durationSeconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly refused: number;
  readonly socketErrors: number;
  readonly used: number;
  readonly exhausted: number;
}

/**
 * One more than a multiple of the numbers of gardens, so that a plant's number keeps its token; and
 * without a divisor in common with the numbers of plants, so that all of them have their turn.
 */
const stride = 7_360_001;
const threadsMax = 2;
const script = join(import.meta.dir, "load.lua");

export async function driveLoad(load: Load, workDirectory: string): Promise<Figures> {
  const threads = Math.min(threadsMax, load.connections);
  const planPath = join(workDirectory, `plan-${crypto.randomUUID()}.lua`);
  writeFileSync(planPath, renderPlan(load, threads));
  const output = await runToEnd({
    command: [
      "wrk",
      `--threads=${threads}`,
      `--connections=${load.connections}`,
      `--duration=${load.durationSeconds}s`,
      "--timeout=30s",
      `--script=${script}`,
      `http://${load.host}`,
      "--",
      planPath,
    ],
  });
  const line = /^FIGURES (.*)$/m.exec(output.standardOutput)?.[1];
  if (line === undefined) {
    throw new Error(`wrk gave no figures: ${output.standardError || output.standardOutput}`);
  }
  const raw = JSON.parse(line) as RawFigures;
  if (raw.exhausted > 0) throw new Error("The stored plants ran out; store more of them.");
  const responses = raw.requests - raw.refused;
  return {
    responses,
    responsesPerSecond: responses / raw.durationSeconds,
    p50Ms: raw.p50Ms,
    p99Ms: raw.p99Ms,
    faults: raw.refused + raw.socketErrors,
    used: raw.used,
    loadCpuSeconds: output.cpuSeconds,
  };
}

function renderPlan(load: Load, threads: number): string {
  const { instances, offset, first, plants, numbers } = load;
  const seed = Math.floor(Math.random() * 1_000_000_000);
  const settings = { threads, instances, offset, first, plants, numbers, stride, seed };
  const requests = load.shares.map(({ action, weight }) => {
    const pieces = splitAtMarks(renderAction(action, load.host, load.sample)).map(luaText);
    return `    { weight = ${weight}, pieces = { ${pieces.join(", ")} } },`;
  });
  return [
    "return {",
    ...Object.entries(settings).map(([name, value]) => `  ${name} = ${value},`),
    `  tokensPath = ${luaText(load.tokensPath)},`,
    "  requests = {",
    ...requests,
    "  },",
    "}",
    "",
  ].join("\n");
}

/** Lua reads every byte that is written as its decimal number. */
function luaText(text: string): string {
  let rendered = "";
  for (const byte of Buffer.from(text)) {
    const isPlain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c;
    rendered += isPlain ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, "0")}`;
  }
  return `"${rendered}"`;
}
