/**
 * A service on a damaged file: it refuses to start or says of a request that it failed, unless
 * SQLite itself finds nothing wrong with the file. It never crashes, and never answers nonsense.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import type { Storage } from "../../../src/domain/storage.ts";
import { createLog } from "../../../src/log.ts";
import { assemble } from "../../../src/server/assembly.ts";
import { openSqlite } from "../../../src/storage/sqlite/engine.ts";
import { makeDice, spread } from "../../dice.ts";
import { fastestParent, makeTemporaryFolder } from "../../temporary-folder.ts";
import type { Trial } from "../proof.ts";
import { type StoreFiles, writeStore } from "../store-files.ts";
import { damage } from "./damage.ts";
import { token } from "./sound-store.ts";

export async function examine(
  sound: { folded: StoreFiles; logged: StoreFiles },
  seed: number,
): Promise<Trial> {
  const dice = makeDice(spread(seed));
  const { what, files } = damage(dice(2) === 0 ? sound.folded : sound.logged, dice);
  using folder = makeTemporaryFolder(fastestParent());
  const path = join(folder.path, "plants.db");
  const isWhole = checkIntegrity(`${path}.copy`, files);
  writeStore(path, files);
  let storage: Storage;
  try {
    storage = openSqlite(path, { isServing: true });
  } catch (error) {
    const isExplained = /^PlantStoreError: Cannot open .+\.$/.test(String(error));
    return { faults: isExplained ? [] : [`${what}: refused as ${error}`], figures: { refused: 1 } };
  }
  const { faults, isReported } = await useStore(storage);
  await storage.close();
  if (!isWhole && !isReported) faults.push("answered as if whole");
  return {
    faults: faults.map((fault) => `${what}: ${fault}`),
    figures: { [isReported ? "reported" : "answered"]: 1 },
  };
}

/** Whether SQLite itself finds nothing wrong. */
function checkIntegrity(copy: string, files: StoreFiles): boolean {
  writeStore(copy, files);
  let database: Database | undefined;
  try {
    database = new Database(copy);
    const [row] = database.query<Record<string, string>, []>("PRAGMA quick_check(1)").all();
    return Object.values(row ?? {})[0] === "ok";
  } catch {
    return false;
  } finally {
    database?.close();
  }
}

/** Calls the app as the owner of the garden would. */
async function useStore(storage: Storage): Promise<{ faults: string[]; isReported: boolean }> {
  const faults: string[] = [];
  let isReported = false;
  let logged = "";
  const log = createLog("json", (text) => {
    logged += text;
  });
  const { app } = assemble({ basePath: "", corsOrigins: "*" }, storage, log);

  async function send(method: string, target: string, body?: string): Promise<void> {
    const headers = new Headers({ authorization: `Bearer ${token}`, host: "localhost" });
    if (body !== undefined) headers.set("content-type", "application/json");
    const init = { method, headers, ...(body === undefined ? {} : { body }) };
    const response = await app.fetch(new Request(`http://localhost${target}`, init));
    // A list that fails midway is cut off.
    const text = await response.text().catch(() => undefined);
    log.flush();
    if (text !== undefined && response.status < 500) return;
    isReported = true;
    const requestId = response.headers.get("x-request-id") ?? "none";
    const isLogged = logged
      .split("\n")
      .some((line) => line.includes('"level":"error"') && line.includes(requestId));
    if (!isLogged) faults.push(`${method} ${target}: ${response.status}, and not logged`);
  }

  await send("GET", "/plants?fields=id,name,tag");
  await send("GET", "/plants?limit=50");
  await send("GET", "/readyz");
  await send("POST", "/plants", '{"name":"New"}');
  await send("DELETE", "/plants/200");
  return { faults, isReported };
}
