/** Opens what a crash has left with the real storage, and checks that all promises are kept. */
import type { Database } from "bun:sqlite";
import { createLog } from "../../../src/log.ts";
import { assemble } from "../../../src/server/assembly.ts";
import { openStorage } from "../../../src/storage/open.ts";
import { connect } from "../../../src/storage/sqlite/open.ts";
import { createWriter } from "../../../src/storage/sqlite/writer.ts";
import { startService } from "../../end-to-end/running-service.ts";
import { hashOf, type Ledger, readList } from "../ledger.ts";
import { type Caller, checkNextId } from "../plant-client.ts";
import type { Dice } from "./tearing.ts";

/** By garden: the token that was handed out, and what was promised to its clients. */
export type Gardens = ReadonlyMap<string, { readonly token: string; readonly ledger: Ledger }>;

const repeatsMax = 3;

/** In this process, which is fast. Only the writer thread is missing. */
export async function examineHere(path: string, gardens: Gardens, dice: Dice): Promise<string[]> {
  try {
    const storage = await openStorage(path, { isServing: false });
    using database = connect(path);
    const writer = createWriter(database);
    const { app } = assemble(
      { basePath: "", corsOrigins: "*" },
      { ...storage, apply: async (writes) => writer.apply(writes) },
      createLog("off", () => {}),
    );
    const call: Caller["call"] = async (request, { token, body, headers } = {}) => {
      const [method = "", target = ""] = request.split(" ");
      const all = new Headers(headers);
      all.set("host", "localhost");
      all.set("authorization", `Bearer ${token}`);
      if (body) all.set("content-type", "application/json");
      const init = { method, headers: all, ...(body && { body }) };
      return app.fetch(new Request(`http://localhost${target}`, init));
    };
    try {
      return await examine({ call }, database, gardens, dice);
    } finally {
      await storage.close();
    }
  } catch (error) {
    return [`does not open: ${error}`];
  }
}

/** By the real program. */
export async function examineServed(path: string, gardens: Gardens, dice: Dice): Promise<string[]> {
  try {
    await using service = await startService({ database: path });
    using database = connect(path);
    return await examine(service, database, gardens, dice);
  } catch (error) {
    return [`does not start: ${error}`];
  }
}

async function examine(
  service: Caller,
  database: Database,
  gardens: Gardens,
  dice: Dice,
): Promise<string[]> {
  const faults: string[] = [];
  const integrity = database.query<{ integrity_check: string }, []>("PRAGMA integrity_check").all();
  if (integrity[0]?.integrity_check !== "ok") faults.push(`damaged: ${JSON.stringify(integrity)}`);
  for (const [garden, { token, ledger }] of gardens) {
    const list = await service.call("GET /plants?fields=id,name,tag", { token });
    if (list.status !== 200) {
      faults.push(`the token of ${garden} is lost: ${list.status}`);
      continue;
    }
    const plants = readList(await list.text());
    const keys = readKeys(database, garden);
    faults.push(...ledger.audit(plants), ...ledger.auditKeys(plants, keys));
    const { keyed } = ledger;
    for (let count = 0; count < repeatsMax && keyed.length > 0; count++) {
      const [sent] = keyed.splice(dice(keyed.length), 1) as [(typeof keyed)[number]];
      faults.push(...(await repeat(service, token, sent, keys.get(hashOf(sent.name)))));
    }
    const ids = plants.map(({ id }) => BigInt(id));
    const highestId = [ledger.highestId, ...ids].reduce((max, id) => (id > max ? id : max));
    faults.push(...(await checkNextId(service, token, highestId)));
  }
  return faults;
}

function readKeys(database: Database, garden: string): Map<string, string> {
  const rows = database
    .query<{ hash: string; id: string }, [string]>(
      `SELECT lower(hex(key_hash)) AS hash, CAST(plant_id AS TEXT) AS id FROM idempotency_hashes
         WHERE garden = ?`,
    )
    .all(garden);
  return new Map(rows.map(({ hash, id }) => [hash, id]));
}

/** A repeated request gets its first response again, if it had one. */
async function repeat(
  service: Caller,
  token: string,
  { name, body }: { readonly name: string; readonly body: string },
  storedId: string | undefined,
): Promise<string[]> {
  const headers = { "Idempotency-Key": name };
  const response = await service.call("POST /plants", { token, body, headers });
  const isReplayed = response.headers.get("idempotency-replayed") === "true";
  const { tag } = JSON.parse(body);
  const isRight =
    response.status === 201 &&
    isReplayed === (storedId !== undefined) &&
    (await response.text()) === JSON.stringify({ name, tag }) &&
    (storedId === undefined || response.headers.get("location") === `/plants/${storedId}`);
  return isRight ? [] : [`another response to ${name}: ${response.status}`];
}
