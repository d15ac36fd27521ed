/** Signing in to the console, in a real browser: who gets in, and what is kept of a token. */
import { expect } from "bun:test";
import { revokeTokens, waitFor } from "../end-to-end/running-service.ts";
import { inspect } from "./browser.ts";
import { makeGarden, signIn, signOut, somePlants, useConsole } from "./signed-in.ts";

// Each thread hears of a revocation by itself, and a page may have another one than the test.
const testGarden = useConsole(["--threads", "1"]);

testGarden(
  "the page says what is wrong with a token, and keeps one only if asked to",
  { plants: somePlants, isSignedIn: false },
  async ({ page, token, service }) => {
    await page.click("#sign-in-button");
    await page.waitForSelector("#token-error:text-is('Paste a token first.')");
    await page.waitForSelector("#token[aria-invalid=true]:focus");
    await inspect(page, "sign-in-refused");
    await page.keyboard.type("y");
    expect(await page.textContent("#token-error")).toBe("");

    await signIn(page, token);
    expect([page.url(), await page.inputValue("#token")]).toEqual([`${service.url}/`, ""]);
    expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
    await page.reload();
    await page.waitForSelector("#token:visible");
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
  async ({ page, service, call }) => {
    // Without them, little but the click can find out that the token is revoked.
    await page.route("**/events*", (route) => route.abort());
    const { user } = await (await call("GET /me")).json();
    await page.click("#open-add");
    await page.fill("#add-name", "Hedera helix");
    await revokeTokens(service, user);
    await waitFor(async () => (await call("GET /me")).status === 401 || undefined);
    // If the page has found out before, the button is hidden.
    await page.locator("#add-button").evaluate((element: HTMLElement) => element.click());
    await page.waitForSelector("#sign-in-reason:has-text('expired or was revoked')");
    expect(await page.isVisible("#garden")).toBe(false);
    await inspect(page, "expired");
    // The request that was refused goes on, with any token to the same garden.
    await signIn(page, await makeGarden(service, [], { user: "carol", garden: user }));
    await page.waitForSelector("#notice:has-text('“Hedera helix” was added')");
    // Whoever signs in next finds nothing of what was typed.
    await page.fill("#add-name", "Acer");
    await signOut(page);
    await signIn(page, await makeGarden(service));
    expect(await page.inputValue("#add-name")).toBe("");
  },
);
