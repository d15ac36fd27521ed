/** Signing in to the console with a token, what its rights allow, and signing out. */
import { expect } from "bun:test";
import { revokeTokens } from "../../testing/running-service.ts";
import { expectAccessible } from "./browser.ts";
import { makeClient, signIn, signOut, twelvePlants, useConsole } from "./signed-in.ts";

/** Its tests also fail if the page logs errors, calls other hosts or violates its policy. */
const testPage = useConsole();

testPage("the form asks for a token if there is none", { isSignedIn: false }, async ({ page }) => {
  await page.click("#sign-in-button");

  await page.waitForSelector("#token-error:text-is('Paste a token first.')");
  await page.waitForSelector("#token[aria-invalid=true]:focus");
  await expectAccessible(page, "sign-in-refused");
});

testPage(
  "a token outlives a reload only if the user asks for it, until signing out",
  { plants: twelvePlants, isSignedIn: false },
  async ({ page, token }) => {
    await signIn(page, token);
    expect(await page.inputValue("#token")).toBe("");
    await page.reload();
    await page.waitForSelector("#token:visible");

    await page.check("#keep-token");
    await signIn(page, token);
    // It is kept for this tab only.
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
    await page.reload();
    await page.waitForSelector("#rows .row");

    await signOut(page);
    expect(await page.locator("#rows .row").count()).toBe(0);
    await page.reload();
    await page.waitForSelector("#token:visible");
  },
);

testPage(
  "a password manager finds the token and a name for it when the form goes",
  { isSignedIn: false },
  async ({ page, token, user }) => {
    // Notes the name at the moment when the form is hidden.
    await page.evaluate(() => {
      const form = document.querySelector("#sign-in") as HTMLElement;
      const account = document.getElementById("account") as HTMLInputElement;
      new MutationObserver(() => {
        form.dataset.kept = account.value;
      }).observe(form, { attributeFilter: ["hidden"] });
    });

    await page.fill("#token[type=password][autocomplete=current-password]", token);
    await page.keyboard.press("Enter");

    await page.waitForSelector(`#sign-in[data-kept='${user} in ${user}']`, { state: "attached" });
    expect(await page.locator("[autocomplete=username]").isVisible()).toBe(false);
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
  },
);

testPage(
  "after a revocation, another token to the garden goes on with what was typed",
  {},
  async ({ page, service, user }) => {
    await page.click("#first-add");
    await page.fill("#add-name", "Hedera helix");

    await revokeTokens(service, user);
    await page.waitForSelector("#sign-in-reason:has-text('expired or was revoked')");
    expect(await page.isVisible("#garden")).toBe(false);
    await signIn(page, (await makeClient(service, { user: "carol", garden: user })).token);
    await page.click("#add-button");

    await page.waitForSelector("#undo:has-text('“Hedera helix” was added')");
  },
);

testPage(
  "a token can be typed if the last one was revoked while a dialog was open",
  { viewport: { width: 700, height: 800 } },
  async ({ page, service, user }) => {
    await page.click("#open-activity");
    await page.waitForSelector("#activity[open]");

    await revokeTokens(service, user);
    await page.waitForSelector("#sign-in-reason:has-text('expired or was revoked')");

    await signIn(page, (await makeClient(service, { user: "carol", garden: user })).token);
  },
);

testPage(
  "after signing out, the next user finds nothing of what was typed",
  {},
  async ({ page, service }) => {
    await page.click("#first-add");
    await page.fill("#add-name", "Acer");

    await signOut(page);
    await signIn(page, (await makeClient(service)).token);
    await page.click("#first-add");

    expect(await page.inputValue("#add-name")).toBe("");
  },
);

testPage(
  "the menu behind the user's name shows the token's rights, and how a colleague gets one",
  {},
  async ({ page, user }) => {
    await page.click(`#open-me:has-text('${user}')`);

    expect(await page.locator("#me dd").allTextContents()).toEqual([
      user,
      user,
      "read and write, never expires",
    ]);
    expect(await page.textContent("#invitation")).toBe(
      `plantstore token create NAME --garden ${user}`,
    );
    await expectAccessible(page, "me");

    await page.keyboard.press("Escape");
    await page.waitForSelector("#me", { state: "hidden" });
  },
);

testPage(
  "the menu shows that a token can only read, and when it expires",
  { isSignedIn: false },
  async ({ page, service, user: garden }) => {
    const expiresAtMs = Date.UTC(2099, 11, 31, 12);
    const ann = await makeClient(service, { user: "ann", garden, scope: "read", expiresAtMs });
    await signIn(page, ann.token);

    await page.click("#open-me");

    expect(await page.locator("#me dd").allTextContents()).toEqual([
      "ann",
      garden,
      expect.stringContaining("read only, expires December 31, 2099 at "),
    ]);
    expect(await page.locator("#invitation").count()).toBe(0);
    await page.keyboard.press("Escape");
    await page.waitForSelector("#me", { state: "hidden" });
  },
);

testPage(
  "a token that can only read is offered no changes, and keys make none",
  { isSignedIn: false },
  async ({ page, service, store, user: garden }) => {
    const ann = await makeClient(service, { user: "ann", garden, scope: "read" });
    await signIn(page, ann.token);
    await page.waitForSelector("#empty:has-text('this token can only read')");
    await store.create({ name: "Fern" });
    await page.waitForSelector(".row:has-text('Fern')");

    await page.keyboard.press("n");
    await page.keyboard.press("x");
    await page.focus(".opener");
    await page.keyboard.press("Delete");

    const controlsThatWrite = page.locator(
      "#add, #open-add, #open-import, #selection, #table input, #edit-save, #plant-delete",
    );
    expect(await controlsThatWrite.count()).toBe(0);
    await expectAccessible(page, "read-only");

    await page.keyboard.press("Enter");
    await page.waitForSelector("#edit-name[readonly]");
    expect(await page.locator("#edit button").allTextContents()).toEqual(["Close"]);
    await expectAccessible(page, "read-only-plant");
  },
);
