/** Starts the page: signing in and out. The rest is the garden view's. */
import { cleanToken, findTokenError } from "../auth/opaque-token.ts";
import { type Api, connect, describeError, type Opening, toRefusal } from "./api.ts";
import { find, leaveRoomForNotices, show } from "./elements.ts";
import { drawFern } from "./fern.ts";
import { GardenView } from "./garden-view.ts";

const tokenInput = find<HTMLInputElement>("token");
const keepBox = find<HTMLInputElement>("keep-token");
const button = find<HTMLButtonElement>("sign-in-button");
const view = new GardenView(() => signOut(expired));
let calls = new AbortController();

const expired = "Your token has expired or was revoked. Sign in with another one to continue.";

const refused = "Plant Store doesn’t accept this token. It may be mistyped, expired or revoked.";

/** How long signing out waits for pending deletions. */
const signOutMs = 5_000;
const lateNote = "Signed out. The last deletions got no response, so they may not have happened.";

drawFern(find<SVGElement>("fern"));
leaveRoomForNotices();
find("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  void signIn(tokenInput.value);
});
tokenInput.addEventListener("input", () => showError(""));
find("sign-out").addEventListener("click", async () => {
  const isLate = new Promise<string>((resolve) => setTimeout(resolve, signOutMs, lateNote));
  signOut(await Promise.race([view.finish(), isLate]));
});

/** In the tab's storage only if its owner ticked the box, to survive a reload. */
const storageKey = "plantstore-token";
const keptToken = tabStorage()?.getItem(storageKey);
if (keptToken) enter(connect(keptToken, calls.signal));
else showSignIn();

async function signIn(text: string): Promise<void> {
  if (button.disabled) return;
  const token = cleanToken(text);
  if (token === "") return showError("Paste a token first.");
  const error = findTokenError(token);
  if (error !== undefined) return showError(`This ${error}`);
  showError("");
  button.disabled = true;
  try {
    const api = connect(token, calls.signal);
    const opening = await api.open();
    if (keepBox.checked) tabStorage()?.setItem(storageKey, token);
    enter(api, opening);
  } catch (error) {
    showError(describeSignInError(error));
  } finally {
    button.disabled = false;
  }
}

function describeSignInError(error: unknown): string {
  const isRefused = toRefusal(error)?.code === "unauthenticated";
  return isRefused ? refused : describeError(error);
}

function enter(api: Api, opening?: Opening): void {
  tokenInput.value = "";
  showView("garden");
  view.open(api, opening);
}

/** Forgets everything, and shows the reason if there is one. */
function signOut(reason: string | Node = ""): void {
  calls.abort();
  calls = new AbortController();
  tabStorage()?.removeItem(storageKey);
  view.close();
  find("sign-in-reason").replaceChildren(reason);
  show(find("sign-in-reason"), reason !== "");
  showError("");
  showSignIn();
}

function showSignIn(): void {
  showView("sign-in");
  tokenInput.focus();
}

function showView(name: "sign-in" | "garden"): void {
  show(find("sign-in"), name === "sign-in");
  show(find("garden"), name === "garden");
  show(find("sign-out"), name === "garden");
  show(find("keys"), name === "garden");
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
