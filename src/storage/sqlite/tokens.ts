/** Stores tokens in SQLite: found by hash, listed, added, revoked. */
import type { Database } from "bun:sqlite";
import type { TokenStorage } from "../../domain/ports.ts";
import type { TokenRecord } from "../../domain/token.ts";
import { type TokenRow, toTokenRecord } from "../rows.ts";
import { guard } from "./errors.ts";

export function createTokenStorage(database: Database): Omit<TokenStorage, "noteTokenUses"> {
  const find = database.query<TokenRow, [string]>("SELECT * FROM tokens WHERE hash = ?");
  const list = database.query<TokenRow, []>("SELECT * FROM tokens ORDER BY created_at_ms, rowid");
  const add = database.query(
    `INSERT INTO tokens (id, hash, user, garden, scope, note, created_at_ms, expires_at_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const revoke = database.query(
    "UPDATE tokens SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL",
  );
  // Inserts the row if somebody has deleted it: without it, no service notices a revocation.
  const countChange = database.query(
    `INSERT INTO token_changes (one, count) VALUES (1, 1)
       ON CONFLICT DO UPDATE SET count = count + 1`,
  );
  const readChanges = database.query<{ count: bigint }, []>("SELECT count FROM token_changes");

  const addCounted = database.transaction((token: TokenRecord) => {
    const { id, hash, user, garden, scope, note, createdAtMs, expiresAtMs } = token;
    add.run(id, hash, user, garden, scope, note, createdAtMs, expiresAtMs ?? null);
    countChange.run();
  });
  const revokeCounted = database.transaction((id: string, nowMs: number) => {
    const { changes } = revoke.run(nowMs, id);
    countChange.run();
    return changes > 0;
  });

  return {
    async findToken(hash) {
      const row = guard(() => find.get(hash));
      return row ? toTokenRecord(row) : undefined;
    },
    async listTokens() {
      return guard(() => list.all()).map(toTokenRecord);
    },
    async addToken(token) {
      guard(() => addCounted.immediate(token));
    },
    async revokeToken(id, nowMs) {
      return guard(() => revokeCounted.immediate(id, nowMs));
    },
    async countTokenChanges() {
      return Number(guard(() => readChanges.get())?.count ?? 0n);
    },
  };
}
