/** Opens what a crash has left with the real storage, and checks that all promises are kept. */
import { join } from "node:path";
import { readConfig } from "../../src/config.ts";
import { createLog } from "../../src/log.ts";
import { assemble } from "../../src/server/listener.ts";
import { openStorage } from "../../src/storage/open.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { insist, makeCaller } from "../../test/end-to-end/running-service.ts";
import { fastestParent, makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { auditGarden, checkNextId, listPlants } from "../audit.ts";
import { auditStore } from "../audited-store.ts";
import type { Caller } from "../kept-connection.ts";
import { type Entry, Ledger } from "../ledger.ts";
import { type Outcome, PlantClient } from "../plant-client.ts";
import { type Dice, type Image, writeImage } from "./disk.ts";

/** The token that was handed out, and what was promised to its clients. */
export interface Garden {
  readonly token: string;
  readonly entries: readonly Entry[];
}

/** In folders that the program has to make. */
export const databasePath = "/data/here/plants.db";

/** As many as may have been under way. */
const repeatsMax = 10;

export async function examine(
  image: Image,
  gardens: readonly Garden[],
  dice: Dice,
): Promise<string[]> {
  using folder = makeTemporaryFolder(fastestParent());
  writeImage(image, folder.path);
  const path = join(folder.path, databasePath);
  try {
    const storage = await openStorage(path, { isServing: true });
    try {
      const service = serveHere(storage);
      const faults = await auditStore(path);
      for (const garden of gardens) faults.push(...(await check(service, garden, dice)));
      return faults;
    } finally {
      await storage.close();
    }
  } catch (error) {
    return [`cannot be used: ${error}`];
  }
}

/** In this process, which is fast. */
function serveHere(storage: Storage): Caller {
  const log = createLog("off", () => {});
  const { app } = assemble(readConfig({}, {}), storage, log);
  const call = makeCaller("http://localhost", "", async (url, init) => {
    const request = new Request(url, init);
    request.headers.set("host", "localhost");
    return app.fetch(request);
  });
  return { call: (line, init) => insist(() => call(line, init)) };
}

/** Confirmed writes are there, and whatever is sent again with its key is done once. */
async function check(service: Caller, { token, entries }: Garden, dice: Dice): Promise<string[]> {
  const ledger = new Ledger();
  ledger.noteAll(entries);
  const stored = await listPlants(service, token);
  const faults = ledger.audit(stored);

  const { keyed } = ledger;
  const alone = keyed.filter(({ isBulk }) => !isBulk);
  const answered = keyed.filter(({ isBulk, isAnswered }) => isBulk && isAnswered);
  const cutOff = keyed.filter(({ isBulk, isAnswered }) => isBulk && !isAnswered);
  // What is stored must not be created again, even if nobody knew that it was.
  for (const { name, id } of stored) {
    if (!ledger.find(name)?.wasPresent) ledger.note({ name, id, state: "present" });
  }
  const client = new PlantClient(service, { ledger, token });
  const outcomes: Outcome[] = [];
  for (const { plants } of new Set([...alone.slice(-repeatsMax), ...pickOne(alone, dice)])) {
    for (const plant of plants) outcomes.push(await client.create({ ...plant, isKeyed: true }));
  }
  for (const bulk of [...cutOff, ...pickOne(answered, dice)]) {
    outcomes.push(await client.createMany(bulk));
  }
  if (outcomes.some((outcome) => outcome !== "done")) faults.push(`sent again: ${outcomes}`);

  faults.push(...(await auditGarden(service, token, ledger)));
  return [...faults, ...(await checkNextId(service, token, ledger.highestId))];
}

function pickOne<Item>(items: readonly Item[], dice: Dice): readonly Item[] {
  const place = dice(items.length);
  return items.slice(place, place + 1);
}
