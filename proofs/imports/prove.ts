/**
 * `npm run prove imports [imports] [seed]`: imports end at a random moment, from the command line and
 * in the console, by default 40 times. What they say they added is counted from outside, and so is
 * what the console's undo leaves. Then the same file is imported to its end.
 */
import { realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PlantStore } from "../../client/plant-store.ts";
import { makeDice, spread } from "../../testing/dice.ts";
import { FaultyProxy } from "../../testing/faulty-proxy.ts";
import { readOutput, spawnProgram, startService, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { InterposedIo, isInterposable } from "../interposed-io/interposed-io.ts";
import { prove, type Trial } from "../proof.ts";

/** How an import ends. A stop is SIGINT, SIGTERM or the console's button. */
const ends = [
  "a stop",
  "a stop, and its connection closes",
  "a stop, and the service is killed and comes back",
  "a stop, and the service stays away",
  "two stops, and the service stays away",
  "a full disk",
  "a closed connection",
  "a service that stays away",
] as const;
export type End = (typeof ends)[number];
const fronts = ["command line", "console"] as const;
export type Front = (typeof fronts)[number];

/** About a second. */
const rowsCount = 20_000;
const enoughMax = 17_000;
/** So that the moment isn't only between two commits. */
const momentMs = 40;
const awayMsMax = 5_000;
/** npm and `timeout` repeat a signal sooner than that. */
const secondStopMs = 1_100;

/** How many plants an import says it added. The two differ if it doesn't know. */
interface Said {
  readonly least: number;
  readonly most: number;
  /** Undoes it, and resolves to how many plants it says it deleted. */
  readonly undo?: (() => Promise<number>) | undefined;
}

interface RunningImport {
  readonly stop: () => void;
  readonly said: Promise<Said>;
}

interface Access {
  readonly url: string;
  readonly token: string;
}

const toCount = (text = "") => Number(text.replaceAll(",", ""));

function openCommandLine({ url, token }: Access, signal: NodeJS.Signals) {
  const env = { PLANTSTORE_URL: url, PLANTSTORE_TOKEN: token };
  return (file: string): RunningImport => {
    const child = spawnProgram(["import", file], env);
    const said = readOutput(child).then(({ out, errors, exitCode }): Said => {
      if (out === "") throw new Error(`It ended with ${exitCode}: ${errors}`);
      const { stored, storedMax = stored } = JSON.parse(out);
      return { least: stored, most: storedMax };
    });
    return { stop: () => child.kill(signal), said };
  };
}

/** A process of its own, which remembers what it has imported. */
function openConsole({ url, token }: Access) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "console-program.ts")], {
    env: { PLANTSTORE_URL: url, PLANTSTORE_TOKEN: token },
    stdin: "pipe",
    stdout: "pipe",
  });
  const write = (line: string) => {
    child.stdin.write(`${line}\n`);
    child.stdin.flush();
  };
  const replies = readLines(child.stdout);
  const readReply = async (): Promise<{ text: string; canUndo: boolean }> =>
    JSON.parse((await replies.next()).value ?? "");
  async function undo(): Promise<number> {
    write("undo");
    const { text } = await readReply();
    if (text === "The import was undone: nothing was left to take back.") return 0;
    const [, count] = /^The import was undone: ([\d,]+) plants? deleted\.$/.exec(text) ?? [];
    if (count === undefined) throw new Error(text);
    return toCount(count);
  }
  async function readSaid(): Promise<Said> {
    const { text, canUndo } = await readReply();
    if (text.includes("Nothing was changed or added.")) return { least: 0, most: 0 };
    const found = /Added (?:at least ([\d,]+), at most )?([\d,]+) plants? in/.exec(text);
    if (!found) throw new Error(text);
    const [, least, most] = found;
    return { least: toCount(least ?? most), most: toCount(most), ...(canUndo && { undo }) };
  }
  const begin = (file: string): RunningImport => {
    write(`import ${file}`);
    return { stop: () => write("stop"), said: readSaid() };
  };
  return { begin, close: () => child.kill() };
}

async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    const lines = text.split("\n");
    text = lines.pop() ?? "";
    yield* lines;
  }
}

/** A third of the rows have ids. A request takes about 2,600 of them. */
function writeRows(path: string): void {
  const rows = Array.from({ length: rowsCount }, (_, index) => {
    const id = index % 3 === 0 ? String(index + 1) : "";
    return `${id},${`Plant ${index} `.padEnd(80, "x")}\n`;
  });
  writeFileSync(path, `id,name\n${rows.join("")}`);
}

export async function endImport(front: Front, end: End, seed: number): Promise<Trial> {
  const dice = makeDice(spread(seed));
  using folder = makeTemporaryFolder();
  const root = realpathSync(folder.path);
  const file = join(root, "plants.csv");
  writeRows(file);
  await using stack = new AsyncDisposableStack();
  const io = end === "a full disk" ? stack.use(new InterposedIo(root)) : undefined;
  const database = join(root, "plants.db");
  let service = await startService({ database, variables: io?.variables ?? {} });
  const { port, token } = service;
  stack.defer(() => service[Symbol.asyncDispose]());
  const proxy = await FaultyProxy.open(service.url);
  stack.defer(proxy.close);
  const store = new PlantStore({ url: service.url, token });
  /** Once no request is being carried out any more. */
  const countPlants = async () => {
    for (let before = -1; ; await Bun.sleep(300)) {
      const { plants } = await store.me();
      if (plants === before) return plants;
      before = plants;
    }
  };
  const goAway = () => {
    proxy.isUp = false;
    proxy.cut();
  };

  async function finish({ stop }: RunningImport): Promise<void> {
    if (end.startsWith("a stop") || end.startsWith("two stops")) stop();
    switch (end) {
      case "a stop, and its connection closes":
      case "a closed connection":
        return proxy.cut();
      case "a stop, and the service is killed and comes back":
        await service[Symbol.asyncDispose]();
        await Bun.sleep(dice(awayMsMax));
        service = await startService({ database, port });
        return;
      case "two stops, and the service stays away":
        goAway();
        await Bun.sleep(secondStopMs);
        return stop();
      case "a stop, and the service stays away":
      case "a service that stays away":
        return goAway();
      case "a full disk":
        return io?.fail({ kinds: ["write"], error: "ENOSPC" });
    }
  }

  const access = { url: proxy.url, token };
  const signal = dice(2) === 0 ? "SIGINT" : "SIGTERM";
  let begin = openCommandLine(access, signal);
  if (front === "console") {
    const page = openConsole(access);
    stack.defer(page.close);
    begin = page.begin;
  }
  const running = begin(file);
  const enough = dice(enoughMax);
  let isOver = false;
  running.said.finally(() => {
    isOver = true;
  });
  await waitFor(async () => isOver || (await store.me()).plants > enough || undefined);
  await Bun.sleep(dice(momentMs));
  await finish(running);
  const { least, most, undo: undoImport } = await running.said;
  proxy.isUp = true;
  io?.heal();
  const faults: string[] = [];
  const stored = await countPlants();
  if (stored < least || stored > most) faults.push("that is not what is stored");
  if (undoImport) {
    const deleted = await undoImport();
    const left = await countPlants();
    if (left > 0) faults.push(`it was undone, and ${left} are left`);
    if (deleted < stored) faults.push(`undo said ${deleted}, and ${stored} were stored`);
  }
  // To the end. The console, whose import was undone, adds all of it again.
  const before = await countPlants();
  const again = await begin(file).said;
  const after = await countPlants();
  if (after !== rowsCount) faults.push(`the file has ${rowsCount} plants, and ${after} are stored`);
  if (again.least !== after - before || again.most !== after - before) {
    faults.push(`the second said ${again.least} to ${again.most}, and added ${after - before}`);
  }
  const isUnknown = least !== most;
  const figures = {
    ...(stored < rowsCount && { "ended early": 1 }),
    ...(isUnknown && { "named both bounds": 1 }),
  };
  const said = isUnknown ? `${least} to ${most}` : least;
  return { faults, figures, row: `${front}, ${end}: it said ${said}, and ${stored} are stored` };
}

if (import.meta.main) {
  const tried = ends.filter((end) => end !== "a full disk" || isInterposable);
  await prove({
    trials: "imports",
    count: 40,
    run: (seed) => {
      const front = fronts[seed % 2] as Front;
      return endImport(front, tried[Math.floor(seed / 2) % tried.length] as End, seed);
    },
  });
}
