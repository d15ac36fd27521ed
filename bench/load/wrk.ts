/** Drives one server with wrk and reads the figures. It does not know who answers. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runToEnd } from "../process/children.ts";
import { renderAction, type Share, type Slot, slotMark } from "./action.ts";

export interface Load {
  readonly host: string;
  readonly shares: readonly Share[];
  readonly connections: number;
  readonly durationSeconds: number;
  /** How long each connection rests between an answer and its next request. */
  readonly pauseMs?: number;
}

export interface Figures {
  /** Answers of the expected kind. */
  readonly answers: number;
  readonly answersPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Answers of another kind, lost connections and timeouts. */
  readonly faults: number;
  /** The highest number that a slot was filled with; 0 if none was. */
  readonly usedMost: number;
  /** What the making of the load took. */
  readonly loadCpuSeconds: number;
}

interface RawFigures {
  readonly requests: number;
  readonly durationSeconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly refused: number;
  readonly socketErrors: number;
  readonly timeouts: number;
  readonly usedMost: number;
  readonly exhausted: number;
}

const threadsMax = 2;
/** Numbers in slots have nine digits, so that the length of a body is known beforehand. */
const slotCharacters = 9;
const script = join(import.meta.dir, "load.lua");

export async function driveLoad(load: Load, workDirectory: string): Promise<Figures> {
  const threads = Math.min(threadsMax, load.connections);
  const planPath = join(workDirectory, `plan-${crypto.randomUUID()}.lua`);
  writeFileSync(planPath, renderPlan(load, threads));
  const seconds = `${load.durationSeconds}s`;
  const output = await runToEnd({
    command: [
      ...["wrk", `--threads=${threads}`, `--connections=${load.connections}`],
      ...[`--duration=${seconds}`, "--timeout=30s", `--script=${script}`],
      ...[`http://${load.host}`, "--", planPath],
    ],
  });
  const line = /^FIGURES (.*)$/m.exec(output.standardOutput)?.[1];
  if (line === undefined) {
    throw new Error(`wrk gave no figures: ${output.standardError || output.standardOutput}`);
  }
  return toFigures(JSON.parse(line) as RawFigures, load, output.cpuSeconds);
}

function toFigures(raw: RawFigures, load: Load, loadCpuSeconds: number): Figures {
  if (raw.exhausted > 0) throw new Error("The prepared plants ran out; seed more of them.");
  const expectsRefusal = load.shares.every((share) => share.action.status >= 400);
  const answers = expectsRefusal ? raw.refused : raw.requests - raw.refused;
  return {
    answers,
    answersPerSecond: answers / raw.durationSeconds,
    p50Ms: raw.p50Ms,
    p99Ms: raw.p99Ms,
    maxMs: raw.maxMs,
    faults: raw.requests - answers + raw.socketErrors + raw.timeouts,
    usedMost: raw.usedMost,
    loadCpuSeconds,
  };
}

function renderPlan(load: Load, threads: number): string {
  const requests = load.shares.map(({ action, weight }) => {
    const [before = "", after] = renderAction(action, load.host, slotCharacters).split(slotMark);
    const fields = [`weight = ${weight}`, `before = ${luaText(before)}`];
    if (after !== undefined) fields.push(`after = ${luaText(after)}`);
    if (action.slot) fields.push(`slot = ${renderSlot(action.slot)}`);
    return `    { ${fields.join(", ")} },`;
  });
  const pause = load.pauseMs === undefined ? [] : [`  pauseMs = ${load.pauseMs},`];
  const seed = `  seed = ${Math.floor(Math.random() * 1_000_000)},`;
  const head = ["return {", `  threads = ${threads},`, seed, ...pause, "  requests = {"];
  return [...head, ...requests, "  },", "}", ""].join("\n");
}

function renderSlot(slot: Slot): string {
  if (slot.kind === "line") return `{ kind = "line", path = ${luaText(slot.path)} }`;
  const { first, span, stride, wraps } = slot;
  return `{ kind = "number", first = ${first}, span = ${span}, stride = ${stride}, wraps = ${wraps} }`;
}

/** Every byte that is not plain is written by its number, which Lua reads in any text. */
function luaText(text: string): string {
  let rendered = "";
  for (const byte of Buffer.from(text)) {
    const isPlain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c;
    rendered += isPlain ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, "0")}`;
  }
  return `"${rendered}"`;
}
