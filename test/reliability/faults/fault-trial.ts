/**
 * The real program does the same work each time, and one of its calls on its files fails, or all
 * from that one on. No answer may promise what a cut could then lose; it goes on by itself once the
 * disk does, or says why it cannot and ends.
 */
import { mkdirSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { InterposedIo } from "../interposed-io/interposed-io.ts";
import { Ledger } from "../ledger.ts";
import { type Image, pretend } from "../power-cuts/leftover.ts";
import type { Trial } from "../proof.ts";
import { type StoreFiles, writeStore } from "../store-files.ts";
import { Cuts } from "./cuts.ts";
import type { Failure } from "./failures.ts";
import { Gardener } from "./gardener.ts";
import type { Scene } from "./scenes.ts";

export interface Stroke {
  readonly scene: Scene;
  readonly failure: Failure;
  readonly nth: number;
  /** All calls from that one on fail, until the disk is well again. */
  readonly isLasting: boolean;
  /** Another program than the real one. */
  readonly program?: string;
}

const recoveryTries = 30;
const recoveryPauseMs = 100;

/** How many calls of the scene can fail in this way. */
export async function countCalls(scene: Scene, failure: Failure): Promise<number> {
  const never = Number.MAX_SAFE_INTEGER - 1;
  const trial = await strike({ scene, failure, nth: never, isLasting: false });
  if (trial.faults.length > 0) throw new Error(trial.faults.join("\n"));
  return trial.calls;
}

/** And how many calls there were that could have failed in this way. */
export async function strike(stroke: Stroke): Promise<Trial & { readonly calls: number }> {
  const { scene, failure, nth, isLasting, program } = stroke;
  using folder = makeTemporaryFolder();
  const root = realpathSync(folder.path);
  const database = join(root, "data", "plants.db");
  using io = new InterposedIo(root);
  if (scene.files) {
    mkdirSync(dirname(database));
    writeStore(database, scene.files);
    pretend({ image: imageOf(scene.files), notes: [] }, root, io);
  }
  const cuts = new Cuts(root, database);
  const ledger = new Ledger();
  for (const name of scene.plants) ledger.note(name, "there");
  const faults: string[] = [];
  const figures: Record<string, number> = {};
  const arm = () => failure.rules(nth, isLasting).map((rule) => io.fail(rule));

  let rules = scene.isFromStart ? arm() : [];
  const service = await startService({
    database,
    args: ["--threads", "1"],
    variables: io.variables,
    program,
  }).catch((error: Error) => {
    if (!/^It ended with 1: plantstore: [^\n]+\.\n$/.test(error.message))
      faults.push(error.message);
    return undefined;
  });
  if (!scene.isFromStart) rules = arm();
  const auditCuts = (moment: string) => faults.push(...cuts.audit(io.calls(), ledger, moment));

  if (service) {
    const gardener = new Gardener(service, scene.token ?? service.token, ledger);
    await gardener.tend("trouble");
    auditCuts("in trouble");
    const isOver = await Promise.race([service.exited.then(() => true), Bun.sleep(0)]);
    figures[isOver ? "ended" : "served on"] = 1;
    if (isLasting) io.heal();
    faults.push(...(await recover(service, gardener)));
    auditCuts("after it");
    service.signal("SIGTERM");
    const exitCode = await service.exited;
    if (exitCode !== 0 && !isExplained(service, exitCode)) faults.push(`it ended with ${exitCode}`);
    faults.push(...gardener.faults);
    Object.assign(figures, gardener.figures);
    await service[Symbol.asyncDispose]();
  } else figures["did not start"] = 1;
  figures["calls that failed"] = rules.reduce((sum, rule) => sum + rule.counts().failed, 0);
  auditCuts("at the end");
  faults.push(...(await startAgain(database, scene.token, ledger)));
  const where = `${scene.name}, ${failure.name}, call ${nth}${isLasting ? " and on" : ""}`;
  const calls = rules[0]?.counts().matched ?? 0;
  return { faults: faults.map((fault) => `${where}: ${fault}`), figures, calls };
}

function imageOf({ database, log }: StoreFiles): Image {
  return new Map<string, Uint8Array | "folder">([
    ["data", "folder"],
    ["data/plants.db", database],
    ["data/plants.db-wal", log],
  ]);
}

/** Without a restart; unless it has ended by itself and said so. */
async function recover(service: RunningService, gardener: Gardener): Promise<string[]> {
  for (let tries = 0; tries < recoveryTries; tries++) {
    const id = await gardener.create(`after it ${tries}`);
    if (id !== undefined && (await gardener.isReady()) && (await gardener.list())) return [];
    const exitCode = await Promise.race([service.exited, Bun.sleep(recoveryPauseMs)]);
    if (exitCode === undefined) continue;
    return isExplained(service, exitCode) ? [] : [`it ended with ${exitCode}`];
  }
  return [`it did not recover: ${service.output().out.slice(-2_000)}`];
}

function isExplained(service: RunningService, exitCode: number): boolean {
  return exitCode === 1 && service.output().out.includes('"event":"broken down"');
}

async function startAgain(
  database: string,
  token: string | undefined,
  ledger: Ledger,
): Promise<string[]> {
  try {
    await using service = await startService({ database, args: ["--threads", "1"] });
    const gardener = new Gardener(service, token ?? service.token, ledger);
    // The token of a first start is shown once, so only its own process can use it.
    if (token !== undefined && !(await gardener.list())) return ["not listed after a new start"];
    return gardener.faults.map((fault) => `started again: ${fault}`);
  } catch (error) {
    return [`started again: ${error}`];
  }
}
