/** Opens what a crash has left with the real storage, and checks that all promises are kept. */
import type { Database } from "bun:sqlite";
import { createLog } from "../../../src/log.ts";
import { assemble } from "../../../src/server/assembly.ts";
import { entryBytes } from "../../../src/storage/keys.ts";
import { openStorage } from "../../../src/storage/open.ts";
import { prepare } from "../../../src/storage/rules.ts";
import { connect } from "../../../src/storage/sqlite/open.ts";
import { createWriter } from "../../../src/storage/sqlite/writer.ts";
import { startService } from "../../end-to-end/running-service.ts";
import { auditFile } from "../audited-store.ts";
import { type Batch, keyOf, type Ledger, type ListedPlant, readList } from "../ledger.ts";
import { type Caller, checkNextId, listPlants, readResults, repeat } from "../plant-client.ts";
import type { Dice } from "./tearing.ts";

/** By garden: the token that was handed out, and what was promised to its clients. */
export type Gardens = ReadonlyMap<string, { readonly token: string; readonly ledger: Ledger }>;

const repeatsMax = 3;
/** Of an entry in a row of keys, which starts with a hash. */
const hashBytes = 16;

/** In this process, which is fast. Only the writer thread is missing. */
export async function examineHere(path: string, gardens: Gardens, dice: Dice): Promise<string[]> {
  try {
    const storage = await openStorage(path, { isServing: false });
    using database = connect(path);
    const writer = createWriter(database);
    const { app } = assemble(
      { basePath: "", corsOrigins: "*" },
      { ...storage, apply: async (writes) => writer.apply(prepare(writes)) },
      createLog("off", () => {}),
    );
    const call: Caller["call"] = async (request, { token, body, headers } = {}) => {
      const [method = "", target = ""] = request.split(" ");
      const all = new Headers(headers);
      all.set("host", "localhost");
      all.set("authorization", `Bearer ${token}`);
      if (body && !all.has("content-type")) all.set("content-type", "application/json");
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
  const faults = auditFile(database);
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
      faults.push(...(await repeat(service, token, sent, keys.get(keyOf(sent.name)))));
    }
    const { listed, ...repeated } = await repeatBatches(
      service,
      token,
      { ledger, plants, keys },
      dice,
    );
    faults.push(...repeated.faults);
    const ids = listed.map(({ id }) => BigInt(id));
    const highestId = [ledger.highestId, ...ids].reduce((max, id) => (id > max ? id : max));
    faults.push(...(await checkNextId(service, token, highestId)));
  }
  return faults;
}

/** As in `Ledger.auditKeys`. */
function readKeys(database: Database, garden: string): Map<string, string> {
  const rows = database
    .query<{ key: string; entries: Uint8Array }, [string]>(
      "SELECT lower(hex(key)) AS key, entries FROM idempotency_keys WHERE garden = ?",
    )
    .all(garden);
  const ids = rows.flatMap(({ key, entries }) =>
    readIds(entries).map(([entry, id]) => [`${key}/${entry}`, id] as const),
  );
  return new Map(ids);
}

/** By place in the row. A place without a hash is free. */
function readIds(entries: Uint8Array): [number, string][] {
  const row = Buffer.from(entries);
  return Array.from({ length: row.length / entryBytes }, (_, place) => place)
    .filter((place) =>
      row.subarray(place * entryBytes, place * entryBytes + hashBytes).some(Boolean),
    )
    .map((place) => [place, String(row.readBigInt64BE(place * entryBytes + hashBytes))]);
}

/** What was stored in a garden when it was opened. */
interface Stored {
  readonly ledger: Ledger;
  readonly plants: readonly ListedPlant[];
  readonly keys: ReadonlyMap<string, string>;
}

/** The batches without a response, and one that had one. Also returns all plants after that. */
async function repeatBatches(
  service: Caller,
  token: string,
  stored: Stored,
  dice: Dice,
): Promise<{ readonly faults: string[]; readonly listed: ListedPlant[] }> {
  const { true: answered = [], false: cutOff = [] } = Object.groupBy(
    stored.ledger.batches,
    ({ isAnswered }) => `${isAnswered}` as const,
  );
  const repeated = [...cutOff, ...answered.splice(dice(answered.length), 1)];
  const responses: string[] = [];
  for (const { key, lines } of repeated) {
    const response = await service.call("POST /plants/bulk", {
      token,
      body: lines.map(({ body }) => body).join("\n"),
      headers: { "Content-Type": "application/jsonl", "Idempotency-Key": key },
    });
    responses.push(await response.text());
  }
  const listed = await listPlants(service, token);
  const before = byName(stored.plants);
  const after = byName(listed);
  const faults = repeated.flatMap((batch, index) =>
    auditBatch(batch, responses[index] as string, { keys: stored.keys, before, after }),
  );
  return { faults, listed };
}

type PlantsByName = ReadonlyMap<string, readonly ListedPlant[]>;

function byName(plants: readonly ListedPlant[]): PlantsByName {
  return Map.groupBy(plants, ({ name }) => name);
}

/** Sent again, a batch has each of its plants once, under the ids that were stored. */
function auditBatch(
  { key, lines }: Batch,
  response: string,
  found: Pick<Stored, "keys"> & { readonly before: PlantsByName; readonly after: PlantsByName },
): string[] {
  const results = readResults(response);
  return lines.flatMap(({ name }, line) => {
    const { id, isReplayed, text } = results[line] ?? {};
    const storedId = found.keys.get(keyOf(name, { key, line }));
    const isStored = storedId !== undefined;
    const ids = found.after.get(name)?.map((plant) => plant.id) ?? [];
    // It was deleted, and stays so.
    const isGone = isStored && !found.before.has(name);
    const isRight =
      id !== undefined &&
      isReplayed === isStored &&
      id === (storedId ?? id) &&
      ids.join() === (isGone ? "" : id);
    return isRight ? [] : [`sent again, ${name}: ${text ?? response}, listed as ${ids}`];
  });
}
