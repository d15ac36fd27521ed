/** Opens what a cut left, as a start after it would, and holds it against what was promised. */
import { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import type { Ledger, ListedPlant } from "../ledger.ts";

/** A key without its plant, or a counter behind its garden, is half of a create. */
const halves = [
  `SELECT 'key ' || hex(key_hash) AS half FROM idempotency_hashes AS keys WHERE NOT EXISTS
     (SELECT 1 FROM plants WHERE plants.garden = keys.garden AND plants.id = keys.plant_id)`,
  `SELECT 'counter of ' || garden AS half FROM gardens WHERE last_id <
     (SELECT max(id) FROM plants WHERE plants.garden = gardens.garden)`,
];

/** Every promise that the file breaks, in words. */
export function auditFile(path: string, ledger: Ledger): readonly string[] {
  if (!existsSync(path)) return ledger.audit([]);
  try {
    using database = new Database(path);
    return auditDatabase(database, ledger);
  } catch (error) {
    return [`it cannot be opened: ${error}`];
  }
}

function auditDatabase(database: Database, ledger: Ledger): readonly string[] {
  const texts = (query: string) =>
    database.query<Record<string, string>, []>(query).all().flatMap(Object.values);
  const damage = texts("PRAGMA integrity_check").filter((line) => line !== "ok");
  if (damage.length > 0) return damage;
  if (texts("SELECT name FROM sqlite_schema WHERE name = 'plants'").length === 0) {
    return ledger.audit([]);
  }
  const plants = database
    .query<ListedPlant, []>("SELECT CAST(id AS TEXT) AS id, name FROM plants")
    .all();
  return [...ledger.audit(plants), ...halves.flatMap(texts).map((half) => `half: ${half}`)];
}
