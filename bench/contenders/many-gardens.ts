/** Fills a Plant Store file with many gardens, each with a token of its own. */
import { hashToken, makeToken } from "../../src/auth/opaque-token.ts";
import { firstPlantNumber, numbersUpTo, tag } from "./contender.ts";
import { withDatabase } from "./plant-store.ts";

/** Hands back the tokens, in the order of the gardens. */
export function seedGardens(directory: string, count: number, plantsPerGarden: number): string[] {
  const tokens = Array.from({ length: count }, makeToken);
  withDatabase(directory, (database) => {
    const addToken = database.query(`
      INSERT INTO tokens (id, hash, user, garden, scope, note, created_at_ms)
      VALUES (?1, ?2, ?1, ?1, 'write', 'bench', 0)`);
    for (const [index, token] of tokens.entries()) {
      addToken.run(`garden-${String(index).padStart(6, "0")}`, hashToken(token));
    }
    database
      .query(`${numbersUpTo(plantsPerGarden)}
        INSERT INTO plants (garden, id, name, tag)
        SELECT garden, number, 'Plant ' || number, ?1 FROM tokens CROSS JOIN numbers
        WHERE note = 'bench' ORDER BY garden, number`)
      .run(tag);
    database
      .query(
        "INSERT INTO gardens (garden, last_id) SELECT garden, ?1 FROM tokens WHERE note = 'bench'",
      )
      .run(firstPlantNumber + plantsPerGarden - 1);
  });
  return tokens;
}
