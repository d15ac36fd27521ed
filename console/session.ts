/**
 * Who is signed in. The client asks here for a token: before its first request, and again when the
 * service refuses the token. Its requests wait until somebody has signed in.
 */

import { hasCode } from "../client/problem-error.ts";
import { cleanToken, findTokenError } from "../src/auth/opaque-token.ts";
import { Api, describeError, type Me } from "./api.ts";
import { find, show, whileBusy } from "./elements.ts";

const tokenInput = find<HTMLInputElement>("token");
const keepBox = find<HTMLInputElement>("keep-token");
const button = find<HTMLButtonElement>("sign-in-button");

const expired = "Your token has expired or was revoked. Sign in with another one to continue.";
const refused = "Plant Store doesn’t accept this token. It may be mistyped, expired or revoked.";
const otherGarden = "This token opens another garden. To switch to it, sign out first.";

/** The tab's storage has the token only if its owner wants to stay signed in. */
const storageKey = "plantstore-token";
let token = tabStorage()?.getItem(storageKey) ?? "";
/** Whose garden the page shows, once that's known. */
let owner: Me | undefined;
let signedIn = Promise.withResolvers<void>();

export const api = new Api(async () => {
  if (token === "") await askForToken("");
  else if (!(await isAccepted())) await askForToken(expired);
  return token;
});

find("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  void whileBusy(button, () => signIn(cleanToken(tokenInput.value)));
});
tokenInput.addEventListener("input", () => showError(""));
find("sign-out").addEventListener("click", signOut);
showGarden(token !== "");

/** A proxy may have refused the request, not the service. */
async function isAccepted(): Promise<boolean> {
  try {
    owner = await new Api(token).me();
    return true;
  } catch (error) {
    if (!hasCode(error, "unauthenticated")) throw error;
    return false;
  }
}

async function askForToken(reason: string): Promise<void> {
  const card = find<HTMLDialogElement>("plant");
  const isEditing = card.open;
  find("sign-in-reason").textContent = reason;
  show(find("sign-in-reason"), reason !== "");
  showGarden(false);
  // A dialog would stay in front of the form. The card keeps what somebody typed into it.
  for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  tokenInput.focus();
  signedIn = Promise.withResolvers();
  await signedIn.promise;
  tokenInput.value = "";
  showGarden(true);
  find("garden-title").focus();
  if (isEditing) card.showModal();
}

async function signIn(text: string): Promise<void> {
  if (text === "") return showError("Paste a token first.");
  const error = findTokenError(text);
  if (error !== undefined) return showError(`This ${error}`);
  showError("");
  try {
    const me = await new Api(text).me();
    if (owner && (me.user !== owner.user || me.garden !== owner.garden)) {
      return showError(otherGarden);
    }
    owner = me;
    token = text;
    if (keepBox.checked) tabStorage()?.setItem(storageKey, token);
    signedIn.resolve();
  } catch (error) {
    showError(hasCode(error, "unauthenticated") ? refused : describeError(error));
  }
}

/** Loading the page again forgets everything. */
function signOut(): void {
  tabStorage()?.removeItem(storageKey);
  history.replaceState(null, "", location.pathname + location.search);
  location.reload();
}

/** Signing out is also the way to another garden after a token expired. */
function showGarden(isSignedIn: boolean): void {
  show(find("sign-in"), !isSignedIn);
  show(find("garden"), isSignedIn);
  show(find("keys"), isSignedIn);
  show(find("sign-out"), token !== "" || isSignedIn);
  scrollTo(0, 0);
}

function showError(message: string): void {
  find("token-error").textContent = message;
  tokenInput.setAttribute("aria-invalid", String(message !== ""));
  if (message !== "") tokenInput.focus();
}

/** Browsers that let sites store nothing throw when asked for it. */
function tabStorage(): Storage | undefined {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
}
