/**
 * A store as it lies on the disk, whole: the files that the damage is done to, and what they hold.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { hashToken } from "../../../src/auth/opaque-token.ts";
import type { TokenRecord } from "../../../src/domain/token.ts";
import { openSqlite } from "../../../src/storage/sqlite/engine.ts";
import { create, remove } from "../../storage-contract/tested-storage.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { readStore, type StoreFiles } from "../store-files.ts";

/** The garden that is asked for; it lies between the two others in the file. */
export const garden = "middle";
export const token = `plant_${"0".repeat(49)}`;
/** No name in the garden holds it, and every name in the others does. */
export const foreignMark = "foreign";
export const pageBytes = 4096;

const gardens = ["lower", garden, "upper"];
const plantsCount = 300;

/**
 * Long names fill overflow pages, deletions leave free pages, keys and a token have their own
 * tables. Of the store with a log, all but the last writes are in the database.
 */
export async function makeSoundStore(): Promise<{ folded: StoreFiles; logged: StoreFiles }> {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: false });
  await storage.addToken(tokenRecord());
  const indexes = Array.from({ length: plantsCount }, (_, index) => index);
  await storage.apply(indexes.flatMap((index) => gardens.map((each) => plant(each, index))));
  using beside = new Database(path);
  beside.run("PRAGMA wal_checkpoint(TRUNCATE)");
  for (let index = 0; index < plantsCount; index += 5) {
    await storage.apply([remove(BigInt(index), garden), plant(garden, plantsCount + index)]);
  }
  const logged = readStore(path);
  beside.close();
  await storage.close();
  return { folded: readStore(path), logged };
}

function plant(ofGarden: string, index: number) {
  const name = ofGarden === garden ? "Fern" : foreignMark;
  const key = index % 3 === 0 ? { key: `${name} ${index}`, request: "[]", nowMs: 0 } : undefined;
  return create({
    garden: ofGarden,
    name: `${name} ${index} ${index % 10 === 0 ? "🌿".repeat(180) : ""}`,
    tag: index % 10 === 0 ? "🪴".repeat(100) : "shelf",
    idempotency: key && { ...key, expiresAtMs: Number.MAX_SAFE_INTEGER },
  });
}

function tokenRecord(): TokenRecord {
  return {
    id: "token",
    hash: hashToken(token),
    user: garden,
    garden,
    scope: "write",
    note: "",
    createdAtMs: 0,
    expiresAtMs: undefined,
    revokedAtMs: undefined,
    lastUsedAtMs: undefined,
  };
}
