/** Signing in to the console, in a real browser: who gets in, and what is kept of a token. */
import { expect } from "bun:test";
import { makeToken } from "../../src/auth/opaque-token.ts";
import { waitFor } from "../end-to-end/running-service.ts";
import { inspect } from "./browser.ts";
import {
  makeGarden,
  openCard,
  revokeTokens,
  signIn,
  signOut,
  somePlants,
  useConsole,
} from "./signed-in.ts";

// Each thread hears of a revocation by itself, and a page may have another one than the test.
const testGarden = useConsole(["--threads", "1"]);

testGarden(
  "the page says what is wrong with a token, takes it as it was copied, and keeps it if asked to",
  { plants: somePlants, isSignedIn: false },
  async ({ page, token, service }) => {
    const signInPage = { contentType: "text/html", body: "<html>Sign in</html>" };
    const refuse = async (text: string, error: string) => {
      await page.fill("#token", text);
      await page.click("#sign-in-button");
      await page.waitForSelector(`#token-error:has-text("${error}")`);
      await page.waitForSelector("#token[aria-invalid=true]:focus");
    };
    await refuse("", "Paste a token first.");
    await refuse(`plant_${"x".repeat(49)}`, "This has a typo: its checksum doesn't match.");
    await refuse(makeToken(), "Plant Store doesn’t accept this token.");
    await inspect(page, "sign-in-refused");
    await page.keyboard.type("y");
    expect(await page.textContent("#token-error")).toBe("");
    // From a proxy that wants people to sign in.
    await page.route(/\/me\b/, (route) => route.fulfill(signInPage));
    await refuse("somebody", "Something other than the service responded, with status 200.");
    await page.unroute(/\/me\b/);

    for (const text of [`  Bearer  ${token}\t`, `export PLANTSTORE_TOKEN="${token}"`]) {
      await signIn(page, text);
      expect([page.url(), await page.inputValue("#token")]).toEqual([`${service.url}/`, ""]);
      expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
      await page.reload();
      await page.waitForSelector("#token:visible");
    }
    await page.check("#keep-token");
    await signIn(page, token);
    await page.reload();
    await page.waitForSelector("#rows .row");
    await signOut(page);
    expect(await page.locator("#rows .row").count()).toBe(0);
    await page.reload();
    await page.waitForSelector("#token:visible");
  },
);

testGarden(
  "a token is asked for again when it is revoked, with the reason, and what was begun is finished",
  { plants: somePlants, isFresh: true },
  async ({ page, service, call, token: firstToken }) => {
    // Without them, little but the click can find out that the token is revoked.
    await page.route("**/events*", (route) => route.abort());
    const { user } = await (await call("GET /me")).json();
    let token = firstToken;
    const signInAgain = async (name: string) => {
      token = await makeGarden(service, [], { user: name, garden: user });
      await signIn(page, token);
    };
    const isRefused = async () => (await service.call("GET /me", { token })).status === 401;
    const expire = async (button: string) => {
      await revokeTokens(service);
      await waitFor(async () => (await isRefused()) || undefined);
      // If the page has found out before, the button is hidden.
      await page.locator(button).evaluate((element: HTMLElement) => element.click());
      await page.waitForSelector("#sign-in-reason:has-text('expired or was revoked')");
    };
    await page.click("#open-add");
    await page.fill("#add-name", "Hedera helix");
    await expire("#add-button");
    expect(await page.isVisible("#garden")).toBe(false);
    await inspect(page, "expired");
    // The request that was refused goes on, with any token to the same garden.
    await signInAgain("carol");
    await page.waitForSelector("#notice:has-text('“Hedera helix” was added')");

    await openCard(page, "Hedera helix");
    await page.click("#plant-edit");
    await page.fill("#edit-tag", "wall");
    await expire("#edit-save");
    await signInAgain(user);
    await page.waitForSelector("#notice:has-text('“Hedera helix” was saved')");

    // Somebody else must sign out first, and finds nothing of it.
    await page.fill("#add-name", "Acer");
    await expire("#add-button");
    const other = await makeGarden(service);
    await page.fill("#token", other);
    await page.click("#sign-in-button");
    await page.waitForSelector("#token-error:has-text('another garden')");
    await signOut(page);
    await signIn(page, other);
    expect(await page.inputValue("#add-name")).toBe("");
  },
);
