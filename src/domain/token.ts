/** What is stored of an opaque token: its hash, never the token itself. */
import type { Scope } from "./caller.ts";

export interface TokenRecord {
  /** For the operator; it opens nothing. */
  readonly id: string;
  /** SHA-256 of the token, in hexadecimal. */
  readonly hash: string;
  readonly user: string;
  readonly garden: string;
  readonly scope: Scope;
  readonly note: string;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | undefined;
  readonly revokedAtMs: number | undefined;
  /** Approximate: written about once a minute, never on the path of a request. */
  readonly lastUsedAtMs: number | undefined;
}

type TokenState = "active" | "expired" | "revoked";

export function tokenState(
  token: Pick<TokenRecord, "expiresAtMs" | "revokedAtMs">,
  nowMs: number,
): TokenState {
  if (token.revokedAtMs !== undefined) return "revoked";
  if (token.expiresAtMs !== undefined && token.expiresAtMs <= nowMs) return "expired";
  return "active";
}
