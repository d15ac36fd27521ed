/** A token as every engine keeps it in a row, and as the domain knows it. */
import type { Scope } from "../domain/caller.ts";
import type { TokenRecord } from "../domain/token.ts";

export interface TokenRow {
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

export function toTokenRecord(row: TokenRow): TokenRecord {
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
