/**
 * `npm run prove faults [injections] [seed]`: each file operation fails, in every way. The real
 * program does the same work each time, and one of its operations fails, or all from that one on.
 * It must confirm nothing that a crash could then lose, and go on by itself when the disk does, or
 * say why it cannot and end.
 */
import { realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { plantsPerRow } from "../../src/domain/keys.ts";
import { openSqlite } from "../../src/storage/sqlite/engine.ts";
import { makeDice, spread } from "../../test/dice.ts";
import { type RunningService, startService } from "../../test/end-to-end/running-service.ts";
import { create } from "../../test/storage/tested-storage.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { type Failing, InterposedIo, parseCalls } from "../interposed-io/interposed-io.ts";
import { type Entry, Ledger, type NewBulk, readList, tagOf } from "../ledger.ts";
import { PlantClient } from "../plant-client.ts";
import { type Dice, Disk, type Image, readImage, writeImage } from "../power-cuts/disk.ts";
import { databasePath, examine } from "../power-cuts/examination.ts";
import { prove, type Trial } from "../proof.ts";

export interface Case {
  readonly scene: Scene;
  readonly failure: Pick<Failing, "kinds" | "error" | "isHalved">;
  /** All later operations fail as well, until the disk recovers. */
  readonly isLasting: boolean;
}

export interface Injection extends Case {
  /** Which of the operations that can fail in this way. */
  readonly nth: number;
  readonly program?: string;
}

interface Scene {
  readonly name: string;
  /** What is on the disk before the start. */
  readonly files: Image;
  /** The names of the plants in it. */
  readonly plants: readonly string[];
  /** Absent on an empty disk: the first start creates one. */
  readonly token?: string;
  /** Whether operations fail from the start of the process on, or only once it serves. */
  readonly isFromStart: boolean;
}

const changes: Failing["kinds"] = ["open", "write", "truncate", "sync", "make folder"];
const failures: readonly Case["failure"][] = [
  { kinds: [...changes, "read", "unlink", "rename"], error: "EIO" },
  { kinds: changes, error: "ENOSPC" },
  { kinds: ["write"], error: "ENOSPC", isHalved: true },
  { kinds: ["open"], error: "EMFILE" },
];

/** More than there are in any scene. */
const callsMax = 500;
const walHeaderBytes = 32;
const frameBytes = 24 + 4_096;
/** SQLite checkpoints at 1,000 frames; a few more writes lead there. */
const nearlyFull = 985;

export async function makeCases(): Promise<readonly Case[]> {
  const scenes: readonly Scene[] = [
    { name: "first start", files: new Map(), plants: [], isFromStart: true },
    { name: "start with a WAL", ...(await makeStore(20)), isFromStart: true },
    { name: "checkpoint", ...(await makeStore(nearlyFull)), isFromStart: false },
  ];
  return scenes.flatMap((scene) =>
    failures
      // No start runs out of descriptors, and SQLite goes on if it can't open a folder to sync it.
      .filter(({ error }) => error !== "EMFILE" || !scene.isFromStart)
      .flatMap((failure) => [false, true].map((isLasting) => ({ scene, failure, isLasting }))),
  );
}

/** As a killed process leaves it, with this many frames in its WAL. */
async function makeStore(frames: number): Promise<Pick<Scene, "files" | "plants" | "token">> {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, databasePath);
  const storage = openSqlite(path, { isServing: false });
  const { token } = await issueToken(storage, { user: "gardener" }, Date.now());
  const plants: string[] = [];
  while (statSync(`${path}-wal`).size < walHeaderBytes + frames * frameBytes) {
    const name = `earlier ${plants.length} ${"🌿".repeat(150)}`;
    await storage.apply([create({ garden: "gardener", user: "gardener", name, tag: tagOf(name) })]);
    plants.push(name);
  }
  const files = readImage(folder.path);
  await storage.close();
  return { files, plants, token };
}

const recoveryTries = 30;
const recoveryPauseMs = 100;
/** A process closes its connections a little before it ends. */
const endMs = 5_000;
const args = ["--threads", "1"];

export async function inject(injection: Injection): Promise<Trial> {
  const { scene, failure, nth, isLasting, program } = injection;
  using folder = makeTemporaryFolder();
  const root = realpathSync(folder.path);
  const database = join(root, databasePath);
  writeImage(scene.files, root);
  using io = new InterposedIo(root);
  const lastOfBrief = failure.isHalved ? nth + 1 : nth;
  const arm = () => io.fail({ ...failure, first: nth, ...(!isLasting && { last: lastOfBrief }) });
  const entries: Entry[] = [];
  const ledger = new Ledger((noted) => entries.push(...noted));
  ledger.noteAll(scene.plants.map((name) => ({ name, state: "present" })));
  const faults: string[] = [];

  if (scene.isFromStart) arm();
  const variables = io.variables;
  const service = await startService({ database, args, variables, program }).catch(
    ({ message }: Error) => {
      if (!/^It ended with 1: plantstore: [^\n]+\.\n$/.test(message)) faults.push(message);
      return undefined;
    },
  );
  if (!scene.isFromStart) arm();
  const token = scene.token ?? service?.token;

  const disk = new Disk(scene.files);
  let followed = 0;
  /** What would a crash leave now? */
  const audit = async (when: string) => {
    // It writes now and then by itself: the files must be of one moment.
    service?.signal("SIGSTOP");
    const left = readImage(root);
    const calls = parseCalls(io.log());
    for (const call of calls.slice(followed)) disk.follow(call);
    followed = calls.length;
    service?.signal("SIGCONT");
    const check = async (image: Image, dice: Dice, crash: string) => {
      const found = await examine(image, token ? [{ token, entries }] : [], dice);
      faults.push(...found.map((fault) => `${when}, after ${crash}: ${fault}`));
    };
    await check(left, () => 0, "a kill");
    // The least that may be left, and two disks with more.
    for (const dice of [() => 0, ...[0, 1].map((more) => makeDice(spread(followed + more)))]) {
      await check(disk.cut(dice), dice, "a power cut");
    }
  };

  if (service && token) {
    const client = makeClient(service, token, ledger);
    faults.push(...(await work(client, ledger)));
    await audit("during the failure");
    if (isLasting) io.heal();
    faults.push(...(await recover(client, service, ledger)));
    await audit("after it");
    service.signal("SIGTERM");
    const exitCode = await service.exited;
    if (exitCode !== 0 && !isExplained(service, exitCode)) faults.push(`it ended with ${exitCode}`);
    await service[Symbol.asyncDispose]();
  }
  const { failed } = io.counts();
  await audit("at the end");
  const where = `${scene.name}, ${failure.error}, call ${nth}${isLasting ? " and on" : ""}`;
  return {
    faults: faults.map((fault) => `${where}: ${fault}`),
    figures: { "calls that failed": failed },
  };
}

/**
 * Writes may be refused with 503 or 507, and a list may break off between two pages. Only a process
 * that ends may leave out a response.
 */
function makeClient(service: RunningService, token: string, ledger: Ledger): PlantClient {
  const onNoResponse = async (request: string, error: Error) => {
    if (request.startsWith("GET /plants")) return;
    const exited = service.exited.then(() => true);
    const hasEnded = await Promise.race([exited, Bun.sleep(endMs).then(() => false)]);
    if (!hasEnded) ledger.fault(`${request}: ${error}`);
  };
  return new PlantClient(service, { ledger, token, onNoResponse });
}

/** Two commits. */
const bulk: NewBulk = {
  key: "trouble-bulk",
  plants: Array.from({ length: plantsPerRow + 1 }, (_, index) => ({
    name: `trouble ${index}/bulk`,
  })),
};

/** A few requests of every kind, always the same. */
async function work(client: PlantClient, ledger: Ledger): Promise<string[]> {
  const deleted = "trouble 1";
  await client.create({ name: deleted });
  await client.create({ name: "trouble 2" });
  await client.createMany(bulk);
  await client.createMany(bulk);
  const chosen = { name: "trouble with its own id", id: "-7" };
  await client.create(chosen);
  await client.put(chosen, 1);
  const keyed = { name: "trouble-keyed", isKeyed: true };
  await client.create(keyed);
  await client.create(keyed);
  const id = ledger.find(deleted)?.id;
  if (id !== undefined) await client.delete({ name: deleted, id });
  return (await auditList(client, ledger)) ?? [];
}

/** Undefined if there is no list now. */
async function auditList(client: PlantClient, ledger: Ledger): Promise<string[] | undefined> {
  const list = await client.send("GET /plants?include=id");
  if (list === undefined || list.status === 503) return undefined;
  if (list.status !== 200) return [`list: ${list.status} ${list.text}`];
  return ledger.audit(readList(list.text)).map((fault) => `listed: ${fault}`);
}

/** Without a restart, unless it has ended and said why. */
async function recover(
  client: PlantClient,
  service: RunningService,
  ledger: Ledger,
): Promise<string[]> {
  for (let tries = 0; tries < recoveryTries; tries++) {
    const outcome = await client.create({ name: `after it ${tries}` });
    await client.createMany(bulk);
    const ready = await client.send("GET /readyz");
    const faults = await auditList(client, ledger);
    if (outcome === "done" && ready?.status === 200 && faults) return faults;
    const exitCode = await Promise.race([service.exited, Bun.sleep(recoveryPauseMs)]);
    if (exitCode === undefined) continue;
    return isExplained(service, exitCode) ? [] : [`it ended with ${exitCode}`];
  }
  return [`it did not recover: ${service.output().out.slice(-2_000)}`];
}

function isExplained(service: RunningService, exitCode: number): boolean {
  return exitCode === 1 && service.output().out.includes('"event":"broken down"');
}

if (import.meta.main) {
  const cases = await makeCases();
  /** How many operations a case has, once that is known. */
  const callsOf = new Map<Case, number>();

  await prove({
    trials: "injections",
    count: callsMax * cases.length,
    async run(number) {
      const each = cases[number % cases.length] as Case;
      const nth = (Math.floor(number / cases.length) % callsMax) + 1;
      if (nth > (callsOf.get(each) ?? callsMax)) return { faults: [], figures: {} };
      const trial = await inject({ ...each, nth });
      if (trial.figures["calls that failed"] === 0) callsOf.set(each, nth - 1);
      else if (nth === callsMax) throw new Error(`There are more than ${callsMax} calls.`);
      return trial;
    },
  });
}
