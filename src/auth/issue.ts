/** Makes a new opaque token and has it stored. The token itself leaves here once, to its owner. */
import type { Scope } from "../domain/caller.ts";
import type { TokenStorage } from "../domain/storage.ts";
import type { TokenRecord } from "../domain/token.ts";
import { hashToken, makeIdentifier, makeToken } from "./opaque-token.ts";

const tokenIdCharacters = 10;

export interface TokenWish {
  readonly user: string;
  /** The user's own unless given. */
  readonly garden?: string | undefined;
  readonly scope?: Scope | undefined;
  readonly expiresAtMs?: number | undefined;
  readonly note?: string | undefined;
}

export async function issueToken(
  storage: Pick<TokenStorage, "addToken">,
  wish: TokenWish,
  nowMs: number,
): Promise<{ token: string; record: TokenRecord }> {
  const token = makeToken();
  const record: TokenRecord = {
    id: makeIdentifier(tokenIdCharacters),
    hash: hashToken(token),
    user: wish.user,
    garden: wish.garden ?? wish.user,
    scope: wish.scope ?? "write",
    note: wish.note ?? "",
    createdAtMs: nowMs,
    expiresAtMs: wish.expiresAtMs,
    revokedAtMs: undefined,
    lastUsedAtMs: undefined,
  };
  await storage.addToken(record);
  return { token, record };
}
