/**
 * Where the token is: in memory, and in the tab's own storage only where its owner asked for that.
 */

const key = "plantstore-token";

/** The token that outlived a reload, if there is one. */
export function recallToken(): string | undefined {
  return sessionStorage.getItem(key) ?? undefined;
}

export function keepToken(token: string): void {
  sessionStorage.setItem(key, token);
}

export function forgetToken(): void {
  sessionStorage.removeItem(key);
}
