/** Opens what a crash has left with the real storage, and checks that all promises are kept. */
import { join } from "node:path";
import { wire } from "../../src/process/wire.ts";
import { readConfig } from "../../src/shared/config.ts";
import { createLog } from "../../src/shared/log.ts";
import { openStorage } from "../../src/storage/open.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { auditStore } from "../../testing/audited-store.ts";
import type { Caller } from "../../testing/kept-connection.ts";
import { makeCaller } from "../../testing/running-service.ts";
import { fastestParent, makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { auditGarden, listPlants } from "../audit.ts";
import { type Entry, Ledger, type NewPlant } from "../ledger.ts";
import { PlantClient } from "../plant-client.ts";
import { type Dice, type Image, writeImage } from "./disk.ts";

/** The token that was handed out, and what was promised to its clients. */
export interface Garden {
  readonly token: string;
  readonly entries: readonly Entry[];
}

/** In folders that the program has to make. */
export const databasePath = "/data/here/plants.db";

/** Of the latest requests, as many as may have been under way. */
const repeats = 10;

export async function examine(
  image: Image,
  gardens: readonly Garden[],
  dice: Dice,
): Promise<string[]> {
  using folder = makeTemporaryFolder(fastestParent());
  writeImage(image, folder.path);
  const path = join(folder.path, databasePath);
  let storage: Storage | undefined;
  try {
    storage = await openStorage(path, { isServing: true });
    const service = serveHere(storage);
    const faults = await auditStore(path);
    for (const garden of gardens) faults.push(...(await check(service, garden, dice)));
    return faults;
  } catch (error) {
    return [`cannot be used: ${error}`];
  } finally {
    await storage?.close();
  }
}

/** In this process, which is fast. Time stands still, so that no request waits too long. */
function serveHere(storage: Storage): Caller {
  const log = createLog("off", () => {});
  const { pipeline } = wire(readConfig({}, {}), storage, log, undefined, () => 0);
  const call = makeCaller("http://localhost", "", async (url, init) => {
    const request = new Request(url, init);
    request.headers.set("host", "localhost");
    return pipeline.fetch(request);
  });
  return { call };
}

/** Confirmed writes are there, and whatever is sent again with its key is done once. */
async function check(service: Caller, { token, entries }: Garden, dice: Dice): Promise<string[]> {
  const ledger = new Ledger();
  for (const entry of entries) ledger.note(entry);
  const { keyed } = ledger;
  const stored = await listPlants(service, token);
  const faults = ledger.audit(stored);
  // What is stored must not be created again, even if nobody knew that it was.
  for (const { name, id } of stored) {
    if (!ledger.find(name)?.wasPresent) ledger.note({ name, id, state: "present" });
  }
  const client = new PlantClient(service, { ledger, token });
  // Its id must be new.
  const outcomes = [await client.create({ name: "next" })];
  const any = dice(keyed.length);
  for (const [index, { isBulk, isAnswered, ...bulk }] of keyed.entries()) {
    if (isAnswered && index !== any && index < keyed.length - repeats) continue;
    const [plant] = bulk.plants as [NewPlant];
    const create = () => client.create({ ...plant, isKeyed: true });
    outcomes.push(await (isBulk ? client.createMany(bulk) : create()));
  }
  if (outcomes.some((outcome) => outcome !== "done")) faults.push(`sent again: ${outcomes}`);
  return [...faults, ...(await auditGarden(service, token, ledger))];
}
