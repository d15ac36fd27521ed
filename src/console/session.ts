/**
 * Where the token is: in memory, and in the tab's own storage only where its owner asked for that.
 */

const key = "plantstore-token";

/** The token that outlived a reload, if there is one. */
export function recallToken(): string | undefined {
  return tabStorage()?.getItem(key) ?? undefined;
}

export function keepToken(token: string): void {
  tabStorage()?.setItem(key, token);
}

export function forgetToken(): void {
  tabStorage()?.removeItem(key);
}

/** Where a browser lets sites keep nothing, even to ask for it fails. */
function tabStorage(): Storage | undefined {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
}
