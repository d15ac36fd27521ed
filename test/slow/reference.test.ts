/** The API reference in a browser, under a base path. Its third-party renderer takes long to show it. */
import { expect } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { expectAccessible } from "../browser/browser.ts";
import { signIn, signOut, useConsole } from "../browser/signed-in.ts";

/** Its tests also fail if the page logs errors, calls other hosts or violates its policy. */
const testPage = useConsole();

/** Opens the reference from the console, and returns its tab. */
async function openReference(page: Page): Promise<Page> {
  const opening = page.context().waitForEvent("page");
  await page.click("text=API reference");
  const reference = await opening;
  await reference.waitForSelector(".opblock");
  return reference;
}

/** Opens an operation and sends its request: the example, or what `fill` makes of it. */
async function send(reference: Page, operationId: string, fill?: (form: Locator) => Promise<void>) {
  const form = reference.locator(`[id^=operations-][id$=-${operationId}]`);
  await form.locator(".opblock-summary-control").click();
  await fill?.(form);
  const responding = reference.waitForResponse(
    (response) => response.request().resourceType() === "fetch",
  );
  await form.locator(".execute").click();
  await form.locator(".live-responses-table").waitFor();
  return { form, response: await responding };
}

testPage(
  "the reference, opened from the console, sends examples with the console's token",
  {},
  async ({ page, service, storedNames }) => {
    const reference = await openReference(page);
    await reference.waitForSelector(".authorize.locked");

    const created = await send(reference, "createPlant");
    expect(created.response.status()).toBe(201);
    expect(await storedNames()).toEqual(["Monstera deliciosa"]);

    // No optional parameter is set: the list has the plant.
    const listed = await send(reference, "listPlants");
    expect(listed.response.url()).toBe(`${service.url}/plants`);
    expect(await listed.response.json()).toEqual([
      { name: "Monstera deliciosa", tag: "living room" },
    ]);

    await reference.click(".models-control");
    await expectAccessible(reference, "reference-sent");
    await reference.close();
  },
);

testPage(
  "the reference keeps its token out of storage, and loses it when the console signs out",
  { isSignedIn: false },
  async ({ page, token }) => {
    await page.check("#keep-token");
    await signIn(page, token);
    const reference = await openReference(page);
    await reference.waitForSelector(".authorize.locked");
    expect(await reference.evaluate(() => sessionStorage.length)).toBe(0);
    expect(await reference.evaluate(() => localStorage.length)).toBe(0);

    await signOut(page);
    await reference.evaluate(() => dispatchEvent(new Event("focus")));
    await reference.waitForSelector(".authorize.unlocked");
    const { response } = await send(reference, "getMe");
    expect(response.status()).toBe(401);
    await reference.close();
  },
);

/** Fails unless all of it is in a window with a height of 700 pixels. */
async function expectInView(part: Locator): Promise<void> {
  const box = await part.boundingBox();
  if (!box) throw new Error("It isn't shown.");
  expect(box.y).toBeGreaterThanOrEqual(0);
  expect(box.y + box.height).toBeLessThanOrEqual(700);
}

testPage(
  "on a phone, the reference scrolls to the response, which has every digit of an id",
  { viewport: { width: 390, height: 700 }, hasTouch: true, isMobile: true },
  async ({ page, service, token }) => {
    await page.goto(`${service.url}/docs`);
    await page.click(".btn.authorize");
    await page.fill("#auth-bearer-value", token);
    await expectAccessible(page, "390-reference-token");
    await page.click(".modal-btn.authorize");
    await page.click(".btn-done");

    const { form } = await send(page, "createPlant", async (form) => {
      await form.locator("textarea").fill('{"name": "Fern", "id": 9007199254740993}');
      await form.getByLabel("include").selectOption("id");
    });

    const body = form.locator(".live-responses-table pre").first();
    await body.filter({ hasText: '"id": 9007199254740993' }).waitFor();
    await expectInView(body);
    await expectInView(form.locator(".live-responses-table .response-col_status").last());
    expect(await form.getByRole("status").textContent()).toBe("Response: 201");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    await expectAccessible(page, "390-reference-response");
  },
);
