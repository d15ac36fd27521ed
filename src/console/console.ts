/**
 * Begins the page: signing in and out. What the garden looks like is the garden view's business.
 */
import { type Api, connect, type Page, Refusal } from "./api.ts";
import { find, show } from "./elements.ts";
import { drawFern } from "./fern.ts";
import { GardenView } from "./garden-view.ts";
import { forgetToken, keepToken, recallToken } from "./session.ts";

const tokenInput = find<HTMLInputElement>("token");
const keepBox = find<HTMLInputElement>("keep-token");
const button = find<HTMLButtonElement>("sign-in-button");
const view = new GardenView(() => leave(expired));
let calls = new AbortController();

const expired =
  "Your token is no longer accepted: it has expired or was revoked. Nothing of the garden is kept on " +
  "this page. Sign in with another token to go on.";

/** How long signing out waits for deletions that were under way. */
const signOutMs = 5_000;
const lateNote = "Signed out. No answer came to the last deletions, so they may not have happened.";

drawFern(find<SVGElement>("fern"));
find("sign-in-form").addEventListener("submit", (event) => {
  event.preventDefault();
  // People paste it as they copied it, with the scheme of a header before it.
  void signIn(tokenInput.value.trim().replace(/^bearer\s+/i, ""));
});
tokenInput.addEventListener("input", () => showFault(""));
find("sign-out").addEventListener("click", async () => {
  const isLate = new Promise<string>((resolve) => setTimeout(resolve, signOutMs, lateNote));
  leave(await Promise.race([view.finish(), isLate]));
});

const recalled = recallToken();
if (recalled === undefined) leave();
else enter(connect(recalled, calls.signal));

async function signIn(token: string): Promise<void> {
  if (button.disabled) return;
  // Anything else could not even be sent.
  const canBeSent = /^[!-~]+$/.test(token);
  const advice = token === "" ? "Paste a token first." : "A token has no spaces in it.";
  showFault(canBeSent ? "" : advice);
  if (!canBeSent) return;
  button.disabled = true;
  try {
    const api = connect(token, calls.signal);
    const first = await api.list();
    if (keepBox.checked) keepToken(token);
    enter(api, first);
  } catch (error) {
    const isRefused = error instanceof Refusal && error.status === 401;
    const reason = error instanceof Error ? error.message : String(error);
    showFault(isRefused ? "This token is not accepted: unknown, expired or revoked." : reason);
  } finally {
    button.disabled = false;
  }
}

function enter(api: Api, first?: Page): void {
  tokenInput.value = "";
  showView("garden");
  view.open(api, first);
}

/** Back to the door, with nothing kept; the reason is shown where there is one. */
function leave(reason = ""): void {
  calls.abort();
  calls = new AbortController();
  forgetToken();
  view.close();
  find("sign-in-reason").textContent = reason;
  show(find("sign-in-reason"), reason !== "");
  showFault("");
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

function showFault(message: string): void {
  find("token-fault").textContent = message;
  tokenInput.setAttribute("aria-invalid", String(message !== ""));
  if (message !== "") tokenInput.focus();
}
