/** Tokens in PostgreSQL: found by hash, listed, added, revoked. */

import type { TokenStorage } from "../../domain/ports.ts";
import { Batcher } from "../../limits/batcher.ts";
import { sharedQueue } from "../../limits/fair-queue.ts";
import { toTokenRecord } from "../rows.ts";
import type { TransactionRunner } from "./transaction.ts";

/**
 * Inserts the row if it's missing, because somebody may have emptied all tables to restore a
 * backup. Without the row, no token could be stored.
 */
const counted = `WITH counted AS (INSERT INTO token_changes (one, count) VALUES (1, 1)
  ON CONFLICT (one) DO UPDATE SET count = token_changes.count + 1 RETURNING count)`;

/** Not `*`: after a migration adds a column, the server would refuse the planned statement. */
const columns = `id, hash, "user", garden, scope, note,
  created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms`;

const options = { advice: "See plantstore token list." };

export function createTokenStorage(runner: TransactionRunner): TokenStorage {
  const lookUps = new Batcher(async (hashes: readonly string[]) => {
    const text = `SELECT ${columns} FROM tokens WHERE hash = ANY($1::text[])`;
    const { rows } = await runner.read(sharedQueue("token"), text, [hashes]);
    const tokens = new Map(rows.map((row) => [row.hash, toTokenRecord(row)]));
    return hashes.map((hash) => tokens.get(hash));
  });
  return {
    findToken: (hash) => lookUps.request(sharedQueue("token"), hash),

    async listTokens() {
      const { rows } = await runner.query(
        `SELECT ${columns} FROM tokens ORDER BY created_at_ms, position`,
      );
      return rows.map(toTokenRecord);
    },

    async addToken(token) {
      const { id, hash, user, garden, scope, note, createdAtMs, expiresAtMs } = token;
      await runner.write(
        `${counted}
         INSERT INTO tokens
             (id, hash, "user", garden, scope, note, created_at_ms, expires_at_ms, position)
           SELECT $1, $2, $3, $4, $5, $6, $7::bigint, $8::bigint, count FROM counted`,
        [id, hash, user, garden, scope, note, createdAtMs, expiresAtMs ?? null],
        options,
      );
    },

    async revokeToken(id, nowMs) {
      const { rowCount } = await runner.write(
        `${counted}
         UPDATE tokens SET revoked_at_ms = $1 WHERE id = $2 AND revoked_at_ms IS NULL`,
        [nowMs, id],
        options,
      );
      return rowCount === 1;
    },

    async countTokenChanges() {
      const { rows } = await runner.query("SELECT count FROM token_changes");
      return Number(rows[0]?.count ?? 0);
    },

    async noteTokenUses(uses) {
      const times = Object.fromEntries(uses.map(({ id, usedAtMs }) => [id, usedAtMs]));
      await runner.write(
        `UPDATE tokens SET last_used_at_ms = ($1::jsonb ->> id)::bigint
           WHERE id = ANY (ARRAY (SELECT jsonb_object_keys($1::jsonb)))
             AND coalesce(last_used_at_ms, 0) < ($1::jsonb ->> id)::bigint`,
        [JSON.stringify(times)],
      );
    },
  };
}
