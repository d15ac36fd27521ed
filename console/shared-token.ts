/**
 * The console gives its token to the API reference that was opened from it. The reference keeps it
 * in memory only, and asks again whenever it's looked at: somebody may have signed out by then.
 */

/** Where the console keeps a token in the tab's storage. */
export const storageKey = "plantstore-token";

/** Browsers that let sites store nothing throw when asked for it. */
export function tabStorage(): Storage | undefined {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
}

const request = "plantstore-token?";

/** For the console. The token is empty while nobody is signed in. */
export function shareToken(getToken: () => string): void {
  addEventListener("message", ({ origin, source, data }) => {
    if (origin !== location.origin || data !== request) return;
    source?.postMessage({ token: getToken() }, { targetOrigin: origin });
  });
}

/** For the reference. A token that was typed there counts until the console's changes. */
export function followToken(onChange: (token: string) => void): void {
  const opener: Window | null = globalThis.opener;
  if (!opener) return;
  // A tab starts with a copy of its opener's storage, which signing out wouldn't reach.
  tabStorage()?.removeItem(storageKey);
  let known = "";
  addEventListener("message", ({ origin, source, data }) => {
    if (origin !== location.origin || source !== opener || data.token === known) return;
    known = data.token;
    onChange(known);
  });
  const ask = () => opener.postMessage(request, location.origin);
  addEventListener("focus", ask);
  ask();
}
