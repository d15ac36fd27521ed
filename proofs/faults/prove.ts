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
import { startService, waitFor } from "../../test/end-to-end/running-service.ts";
import { create } from "../../test/storage/tested-storage.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { type Failing, InterposedIo, parseCalls } from "../interposed-io/interposed-io.ts";
import type { Caller } from "../kept-connection.ts";
import { Ledger, readList, tagOf } from "../ledger.ts";
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
    const name = `earlier ${plants.length} ${"☘".repeat(150)}`;
    await storage.apply([create({ garden: "gardener", user: "gardener", name, tag: tagOf(name) })]);
    plants.push(name);
  }
  const files = readImage(folder.path);
  await storage.close();
  return { files, plants, token };
}

/** A process closes its connections a little before it ends. */
const endMs = 5_000;

/** The n-th operation that can fail in this way does. */
export async function inject(each: Case, nth: number, program?: string): Promise<Trial> {
  const { scene, failure, isLasting } = each;
  using folder = makeTemporaryFolder();
  const root = realpathSync(folder.path);
  writeImage(scene.files, root);
  using io = new InterposedIo(root);
  const lastOfBrief = failure.isHalved ? nth + 1 : nth;
  const arm = () => io.fail({ ...failure, first: nth, ...(!isLasting && { last: lastOfBrief }) });
  const ledger = new Ledger();
  for (const name of scene.plants) ledger.note({ name, state: "present" });
  const faults: string[] = [];

  if (scene.isFromStart) arm();
  const started = { database: join(root, databasePath), variables: io.variables, program };
  const service = await startService({ ...started, args: ["--threads", "1"] }).catch(
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
    const least = () => 0;
    const crashes: [crash: string, image: Image, dice: Dice][] = [["a kill", left, least]];
    for (const dice of [least, makeDice(spread(followed)), makeDice(spread(followed + 1))]) {
      crashes.push(["a power cut", disk.cut(dice), dice]);
    }
    const gardens = token ? [{ token, entries: ledger.entries }] : [];
    for (const [crash, image, dice] of crashes) {
      const found = await examine(image, gardens, dice);
      faults.push(...found.map((fault) => `${when}, after ${crash}: ${fault}`));
    }
  };

  if (service && token) {
    const call: Caller["call"] = (request, init) =>
      service.call(request, init).catch(async (error) => {
        // Only a process that ends may leave out a response.
        const exitCode = await Promise.race([service.exited, Bun.sleep(endMs)]);
        if (exitCode === undefined) ledger.fault(`${request}: ${error}`);
        return new Response("The outcome is unknown.", { status: 503 });
      });
    const client = new PlantClient({ call }, { ledger, token });
    await work(client, ledger);
    await audit("during the failure");
    if (isLasting) io.heal();
    const list = async () => {
      const response = await call("GET /plants?include=id", { token });
      return response.ok ? readList(await response.text()) : undefined;
    };
    const recovered = await waitFor(async () => {
      const outcome = await client.create({ name: `after it ${ledger.entries.length}` });
      const { status } = await call("GET /readyz");
      // A list may break off.
      const plants = await list().catch(() => undefined);
      if (outcome === "done" && status === 200 && plants) return ledger.audit(plants);
      // Without a restart, unless it has ended.
      const exitCode = await Promise.race([service.exited, Bun.sleep(1)]);
      return exitCode === undefined ? undefined : ledger.faults;
    });
    faults.push(...recovered.map((fault) => `listed: ${fault}`));
    await audit("after it");
    service.signal("SIGTERM");
    const exitCode = await service.exited;
    const isExplained = exitCode === 1 && service.output().out.includes('"event":"broken down"');
    if (exitCode !== 0 && !isExplained) faults.push(`it ended with ${exitCode}`);
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

/** Two commits. */
const bulk = {
  key: "trouble-bulk",
  plants: Array.from({ length: plantsPerRow + 1 }, (_, index) => ({
    name: `trouble ${index}/bulk`,
  })),
};

/** A few requests of every kind, always the same. */
async function work(client: PlantClient, ledger: Ledger): Promise<void> {
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
      const trial = await inject(each, nth);
      if (trial.figures["calls that failed"] === 0) callsOf.set(each, nth - 1);
      else if (nth === callsMax) throw new Error(`There are more than ${callsMax} calls.`);
      return trial;
    },
  });
}
