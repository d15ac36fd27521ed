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
import { type Entry, type KeyedRequest, Ledger } from "../ledger.ts";
import { PlantClient } from "../plant-client.ts";
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
  return { call };
}

/** Confirmed writes are there, and whatever is sent again with its key is done once. */
async function check(service: Caller, { token, entries }: Garden, dice: Dice): Promise<string[]> {
  const ledger = new Ledger();
  ledger.noteAll(entries);
  const stored = await listPlants(service, token);
  const faults = ledger.audit(stored);

  const idOf = new Map(stored.map(({ name, id }) => [name, id]));
  const { keyed, bulks } = ledger;
  const repeated = new Set([...keyed.slice(-repeatsMax), ...pickOne(keyed, dice)]);
  for (const sent of repeated) {
    const { wasPresent, id } = ledger.find(sent.name) ?? {};
    // Its key is there if its plant is, or was before a delete.
    const storedId = idOf.get(sent.name) ?? (wasPresent ? id : undefined);
    faults.push(...(await repeat(service, token, sent, storedId)));
    if (storedId === undefined) ledger.note({ name: sent.name, state: "present" });
  }

  const client = new PlantClient(service, { ledger, token });
  const { true: answered = [], false: cutOff = [] } = Object.groupBy(
    bulks,
    ({ isAnswered }) => `${isAnswered}` as const,
  );
  for (const { key, plants: sent } of [...cutOff, ...pickOne(answered, dice)]) {
    const readId = (body: string) => /"id":(-?\d+)/.exec(body)?.[1];
    const plants = sent.map(({ name, body }) => ({ name, id: readId(body) }));
    const outcome = await client.createMany({ key, plants });
    if (outcome !== "done") faults.push(`sent again, ${key}: ${outcome}`);
  }

  faults.push(...(await auditGarden(service, token, ledger)));
  const lastId = BigInt((await listPlants(service, token)).at(-1)?.id ?? 0);
  const highestId = lastId > ledger.highestId ? lastId : ledger.highestId;
  return [...faults, ...(await checkNextId(service, token, highestId))];
}

/** A repeated request gets its first response again, if its plant was stored. */
async function repeat(
  service: Caller,
  token: string,
  { name, body }: KeyedRequest,
  storedId: string | undefined,
): Promise<string[]> {
  const headers = { "Idempotency-Key": name };
  const response = await insist(() => service.call("POST /plants", { token, body, headers }));
  const isReplayed = response.headers.get("idempotency-replayed") === "true";
  const { tag } = JSON.parse(body);
  const isRight =
    response.status === 201 &&
    isReplayed === (storedId !== undefined) &&
    (await response.text()) === JSON.stringify({ name, tag }) &&
    (storedId === undefined || response.headers.get("location") === `/plants/${storedId}`);
  return isRight ? [] : [`another response to ${name}: ${response.status}`];
}

function pickOne<Item>(items: readonly Item[], dice: Dice): readonly Item[] {
  const place = dice(items.length);
  return items.slice(place, place + 1);
}
