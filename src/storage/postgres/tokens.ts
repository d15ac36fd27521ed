/** Keeps tokens in PostgreSQL: found by hash, listed, added, revoked. */
import type { Scope } from "../../domain/caller.ts";
import type { TokenStorage } from "../../domain/storage.ts";
import type { TokenRecord } from "../../domain/token.ts";
import type { Attempts } from "./attempts.ts";

interface TokenRow {
  readonly id: string;
  readonly hash: string;
  readonly user: string;
  readonly garden: string;
  readonly scope: Scope;
  readonly note: string;
  readonly created_at_ms: bigint;
  readonly expires_at_ms: bigint | null;
  readonly revoked_at_ms: bigint | null;
  readonly last_used_at_ms: bigint | null;
}

export function createTokenStorage(attempts: Attempts): Omit<TokenStorage, "noteTokenUses"> {
  return {
    async findToken(hash) {
      const { rows } = await attempts.read("SELECT * FROM tokens WHERE hash = $1", [hash]);
      return rows.map(toRecord)[0];
    },

    async listTokens() {
      const { rows } = await attempts.read("SELECT * FROM tokens ORDER BY created_at_ms, position");
      return rows.map(toRecord);
    },

    async addToken(token) {
      const { id, hash, user, garden, scope, note, createdAtMs, expiresAtMs } = token;
      await attempts.write(
        `WITH counted AS (UPDATE token_changes SET count = count + 1 RETURNING count)
         INSERT INTO tokens
             (id, hash, "user", garden, scope, note, created_at_ms, expires_at_ms, position)
           SELECT $1, $2, $3, $4, $5, $6, $7::bigint, $8::bigint, count FROM counted`,
        [id, hash, user, garden, scope, note, createdAtMs, expiresAtMs ?? null],
      );
    },

    async revokeToken(id, nowMs) {
      const { rowCount } = await attempts.write(
        `WITH counted AS (UPDATE token_changes SET count = count + 1 RETURNING count)
         UPDATE tokens SET revoked_at_ms = $1 WHERE id = $2 AND revoked_at_ms IS NULL`,
        [nowMs, id],
      );
      return rowCount === 1;
    },

    async countTokenChanges() {
      const { rows } = await attempts.read("SELECT count FROM token_changes");
      return Number(rows[0]?.count ?? 0);
    },
  };
}

function toRecord(row: TokenRow): TokenRecord {
  return {
    id: row.id,
    hash: row.hash,
    user: row.user,
    garden: row.garden,
    scope: row.scope,
    note: row.note,
    createdAtMs: Number(row.created_at_ms),
    expiresAtMs: toTime(row.expires_at_ms),
    revokedAtMs: toTime(row.revoked_at_ms),
    lastUsedAtMs: toTime(row.last_used_at_ms),
  };
}

function toTime(value: bigint | null): number | undefined {
  return value === null ? undefined : Number(value);
}
