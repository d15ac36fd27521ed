/** Who calls: the user, garden and scope that a credential stands for. */

export const scopes = ["read", "write"] as const;

export type Scope = (typeof scopes)[number];

export interface Caller {
  /** The id of the token, or the issuer and subject of the JWT. */
  readonly credential: string;
  /** For the log: the id of an opaque token, or the `jti` of a JWT that has one. */
  readonly tokenId?: string | undefined;
  readonly user: string;
  /** The set of plants that the credential opens. */
  readonly garden: string;
  /** Absent: the credential is valid, but permits nothing. */
  readonly scope: Scope | undefined;
  /** When the credential expires; absent if it doesn't. */
  readonly expiresAtMs?: number | undefined;
}

/** Whether the caller may do what needs `scope`; `write` includes `read`. */
export function permits(caller: Caller, scope: Scope): boolean {
  return caller.scope === "write" || caller.scope === scope;
}

export const identityCharactersMax = 255;

/**
 * Whether `text` can name a user or a garden: 1 to 255 characters, none of them a control or format
 * character.
 */
export function isIdentity(text: string): boolean {
  return (
    text.length >= 1 &&
    text.length <= identityCharactersMax &&
    text.trim() === text &&
    text.isWellFormed() &&
    !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(text)
  );
}
