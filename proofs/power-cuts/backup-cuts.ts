/** Backups and restores while the power is cut, at every moment. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { makeDice, spread } from "../../testing/dice.ts";
import { fillStore } from "../../testing/filled-store.ts";
import { runProgram } from "../../testing/running-service.ts";
import { fastestParent, makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { InterposedIo } from "../interposed-io/interposed-io.ts";
import { Disk, readImage, writeImage } from "./disk.ts";

type Command = "backup" | "restore";

const [oldPlants, newPlants] = [40, 60];
const done = `${newPlants} plants`;
/** What is there before the command is done. */
const before = { backup: "none", restore: `${oldPlants} plants` };
const [disksPerCall, disksAtEnd] = [3, 30];

/**
 * A backup has its name only if it's whole, and has it once the command has ended. In a restore,
 * the store is the old one or the new one, and the new one once the command has ended.
 */
export async function cutPower(command: Command, program?: string): Promise<string[]> {
  using source = makeTemporaryFolder();
  using folder = makeTemporaryFolder();
  const from = join(source.path, "plants.db");
  const target = join(folder.path, "plants.db");
  await fillStore(from, newPlants);
  if (command === "restore") await fillStore(target, oldPlants);
  const disk = new Disk(readImage(folder.path));
  using io = new InterposedIo(folder.path);
  const args = command === "backup" ? [target, "--database", from] : [from, "--database", target];
  const { errors, exitCode } = await runProgram([command, ...args], io.variables, program);
  if (exitCode !== 0) return [errors];
  const calls = io.calls();
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
