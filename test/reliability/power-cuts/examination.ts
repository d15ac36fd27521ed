/**
 * Opens what a power cut has left, with the real storage, and asks it whether all promises are
 * kept.
 */
import type { Database } from "bun:sqlite";
import { createLog } from "../../../src/log.ts";
import { assemble } from "../../../src/server/assembly.ts";
import { openStorage } from "../../../src/storage/open.ts";
import { connect } from "../../../src/storage/sqlite/open.ts";
import { createWriter } from "../../../src/storage/sqlite/writer.ts";
import { startService } from "../../end-to-end/running-service.ts";
import { type Account, type Held, hashOf, type Owed } from "./account.ts";
import type { Dice } from "./tearing.ts";

type Call = (
  request: string,
  token: string,
  init?: { body?: string; headers?: Record<string, string> },
) => Promise<Response>;

const repeatsMax = 3;

/** In this process, which is fast. Only the thread that commits is missing. */
export async function examineHere(path: string, account: Account, dice: Dice): Promise<string[]> {
  try {
    const storage = await openStorage(path, { isServing: false });
    const database = connect(path);
    try {
      const writer = createWriter(database);
      const { app } = assemble(
        { basePath: "", corsOrigins: "*" },
        { ...storage, apply: async (writes) => writer.apply(writes) },
        createLog("off", () => {}),
      );
      const call: Call = (request, token, { body, headers = {} } = {}) => {
        const [method = "", target = ""] = request.split(" ");
        const all = { ...headers, host: "localhost", authorization: `Bearer ${token}` };
        const type = body === undefined ? undefined : { "content-type": "application/json" };
        const init = { method, headers: { ...all, ...type }, ...(body && { body }) };
        return app.fetch(new Request(`http://localhost${target}`, init));
      };
      return await examine(call, database, account, dice);
    } finally {
      database.close();
      await storage.close();
    }
  } catch (error) {
    return [`does not open: ${error}`];
  }
}

/** By the real program. */
export async function examineServed(path: string, account: Account, dice: Dice): Promise<string[]> {
  try {
    await using service = await startService({ database: path });
    const database = connect(path);
    try {
      const call: Call = (request, token, init) => service.call(request, { ...init, token });
      return await examine(call, database, account, dice);
    } finally {
      database.close();
    }
  } catch (error) {
    return [`does not start: ${error}`];
  }
}

async function examine(
  call: Call,
  database: Database,
  account: Account,
  dice: Dice,
): Promise<string[]> {
  const faults: string[] = [];
  const integrity = database.query<{ integrity_check: string }, []>("PRAGMA integrity_check").all();
  if (integrity[0]?.integrity_check !== "ok") faults.push(`damaged: ${JSON.stringify(integrity)}`);
  for (const [garden, token] of account.tokens) {
    const list = await call("GET /plants?fields=id,name,tag", token);
    if (list.status !== 200) {
      faults.push(`token lost: that of ${garden} is answered ${list.status}`);
      continue;
    }
    const plants = (await list.json()) as Held[];
    const keys = readKeys(database, garden);
    faults.push(...account.audit(garden, plants, keys));
    const keyed = account.keyed(garden);
    for (let count = 0; count < repeatsMax && keyed.length > 0; count++) {
      const [owed] = keyed.splice(dice(keyed.length), 1) as [Owed];
      faults.push(...(await repeat(call, token, owed, keys.get(hashOf(owed.key as string)))));
    }
    faults.push(...(await goOn(call, token, account.highestId(garden, plants))));
  }
  return faults;
}

function readKeys(database: Database, garden: string): Map<string, number> {
  const rows = database
    .query<{ hash: string; plant_id: bigint }, [string]>(
      "SELECT lower(hex(key_hash)) AS hash, plant_id FROM idempotency_hashes WHERE garden = ?",
    )
    .all(garden);
  return new Map(rows.map(({ hash, plant_id }) => [hash, Number(plant_id)]));
}

/** The same request again has the first answer again, if there was one. */
async function repeat(
  call: Call,
  token: string,
  owed: Owed,
  knownId: number | undefined,
): Promise<string[]> {
  const headers = { "Idempotency-Key": owed.key as string };
  const response = await call("POST /plants", token, { body: owed.body, headers });
  const { name, tag } = owed;
  const isFirstAnswer =
    response.status === 201 &&
    (response.headers.get("idempotency-replayed") === "true") === (knownId !== undefined) &&
    (await response.text()) === JSON.stringify({ name, tag }) &&
    (knownId === undefined || response.headers.get("location") === `/plants/${knownId}`);
  return isFirstAnswer ? [] : [`another answer to ${name}: ${response.status}`];
}

/** A new plant gets an id that was never seen before. */
async function goOn(call: Call, token: string, highestId: number): Promise<string[]> {
  const response = await call("POST /plants", token, { body: '{"name":"after the cut"}' });
  const id = Number(response.headers.get("location")?.split("/").at(-1));
  const isNew = response.status === 201 && id > highestId;
  return isNew ? [] : [`a new plant: ${response.status}, with the id ${id} after ${highestId}`];
}
