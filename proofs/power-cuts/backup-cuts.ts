/** Backups and restores while the power is cut, or a file operation fails, at every moment. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { makeDice, spread } from "../../test/dice.ts";
import { runProgram } from "../../test/end-to-end/running-service.ts";
import { fillStore } from "../../test/filled-store.ts";
import { fastestParent, makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { type Failing, InterposedIo } from "../interposed-io/interposed-io.ts";
import { Disk, readImage, writeImage } from "./disk.ts";

type Command = "backup" | "restore";

const [oldPlants, newPlants] = [40, 60];
const done = `${newPlants} plants`;
/** What is there before the command is done. */
const before = { backup: "none", restore: `${oldPlants} plants` };
const [disksPerCall, disksAtEnd] = [3, 30];

async function run(
  command: Command,
  { program, failing }: { program?: string; failing?: Failing },
) {
  using source = makeTemporaryFolder();
  using folder = makeTemporaryFolder();
  const from = join(source.path, "plants.db");
  const target = join(folder.path, "plants.db");
  await fillStore(from, newPlants);
  if (command === "restore") await fillStore(target, oldPlants);
  const image = readImage(folder.path);
  using io = new InterposedIo(folder.path);
  if (failing) io.fail(failing);
  const args = command === "backup" ? [target, "--database", from] : [from, "--database", target];
  const { errors, exitCode } = await runProgram([command, ...args], io.variables, program);
  const left = { found: describe(target), names: [...readImage(folder.path).keys()] };
  return { ...left, errors, exitCode, image, calls: io.calls(), ...io.counts() };
}

/**
 * A backup has its name only if it's whole, and has it once the command has ended. In a restore,
 * the store is the old one or the new one, and the new one once the command has ended.
 */
export async function cutPower(command: Command, program?: string): Promise<string[]> {
  const { errors, exitCode, image, calls } = await run(command, { ...(program && { program }) });
  if (exitCode !== 0) return [errors];
  const disk = new Disk(image);
  const faults: string[] = [];
  for (const [index, call] of calls.entries()) {
    disk.follow(call);
    const isLast = index === calls.length - 1;
    for (let seed = 0; seed < (isLast ? disksAtEnd : disksPerCall); seed++) {
      using left = makeTemporaryFolder(fastestParent());
      writeImage(disk.cut(makeDice(spread(index * disksPerCall + seed))), left.path);
      const found = describe(join(left.path, "plants.db"));
      if (found === done || (found === before[command] && !isLast)) continue;
      faults.push(`cut after call ${index + 1} of ${calls.length}: ${found}`);
    }
  }
  return faults;
}

/** It fails with one sentence and leaves what was there, unless it's done but for the last sync. */
export async function failEachCall(command: Command): Promise<string[]> {
  const faults: string[] = [];
  for (const kind of ["sync", "rename"] as const) {
    for (let nth = 1, failed = 1; failed > 0; nth++) {
      const failing = { kinds: [kind], error: "EIO", first: nth, last: nth } as const;
      const result = await run(command, { failing });
      failed = result.failed;
      const { exitCode, errors, found, names } = result;
      const isExplained = exitCode === 1 && /^plantstore: [^\n]+\.\n$/.test(errors);
      const isLeft =
        isExplained && (found === before[command] || (found === done && kind === "sync"));
      const isClean = !names.some((name) => name.endsWith(".partial"));
      if (isClean && (exitCode === 0 ? found === done : isLeft)) continue;
      faults.push(`${command}, ${kind} ${nth}: ${exitCode}, ${found}, ${names}, ${errors}`);
    }
  }
  return faults;
}

function describe(path: string): string {
  try {
    using database = new Database(path, { readwrite: true, create: false });
    const [[damage]] = database.query("PRAGMA integrity_check(1)").values() as [[string]];
    if (damage !== "ok") return damage;
    return `${database.query("SELECT count(*) FROM plants").values()} plants`;
  } catch (error) {
    const { code, message } = error as { code: string; message: string };
    return code === "SQLITE_CANTOPEN" ? "none" : message;
  }
}
