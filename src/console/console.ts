/** Starts the page: signing in and out. The rest is the garden view's. */
import { cleanToken, findTokenError } from "../auth/opaque-token.ts";
import { type Api, connect, describeError, type Me, toRefusal } from "./api.ts";
import { find, leaveRoomForNotices, show, whileBusy } from "./elements.ts";
import { drawFern } from "./fern.ts";
import { GardenView } from "./garden-view.ts";

const tokenInput = find<HTMLInputElement>("token");
const keepBox = find<HTMLInputElement>("keep-token");
const button = find<HTMLButtonElement>("sign-in-button");
const view = new GardenView(() => signOut(expired));
let calls = new AbortController();

const expired = "Your token has expired or was revoked. Sign in with another one to continue.";

const refused = "Plant Store doesn’t accept this token. It may be mistyped, expired or revoked.";

drawFern(find<SVGElement>("fern"));
leaveRoomForNotices();
find("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  void signIn(tokenInput.value);
});
tokenInput.addEventListener("input", () => showError(""));
find("sign-out").addEventListener("click", () => signOut());
// The address has what is shown, so it must not change.
find("skip").addEventListener("click", (event) => {
  event.preventDefault();
  find("main").focus();
});

/** In the tab's storage only if its owner ticked the box, to survive a reload. */
const storageKey = "plantstore-token";
const keptToken = tabStorage()?.getItem(storageKey);
if (keptToken) enter(connect(keptToken, calls.signal));
else showSignIn();

async function signIn(text: string): Promise<void> {
  const token = cleanToken(text);
  if (token === "") return showError("Paste a token first.");
  const error = findTokenError(token);
  if (error !== undefined) return showError(`This ${error}`);
  showError("");
  await whileBusy(button, async () => {
    try {
      const api = connect(token, calls.signal);
      const me = await api.me();
      if (keepBox.checked) tabStorage()?.setItem(storageKey, token);
      enter(api, me);
    } catch (error) {
      showError(describeSignInError(error));
    }
  });
}

function describeSignInError(error: unknown): string {
  const isRefused = toRefusal(error)?.code === "unauthenticated";
  return isRefused ? refused : describeError(error);
}

function enter(api: Api, me?: Me): void {
  tokenInput.value = "";
  showView("garden");
  view.open(api, me);
}

/** Forgets everything. With a reason, the same person is expected back. */
function signOut(reason = ""): void {
  calls.abort();
  calls = new AbortController();
  tabStorage()?.removeItem(storageKey);
  view.close(reason !== "");
  find("sign-in-reason").textContent = reason;
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
