/** The API reference in a real browser, under a base path. */
import { afterAll, describe, expect, test } from "bun:test";
import { startService } from "../end-to-end/running-service.ts";
import { inspect, isBrowserMissing, openPage, watchPages } from "./browser.ts";
import { harvest, signIn } from "./signed-in.ts";

watchPages();
const service = await startService({ args: ["--base-path", "/garden/v1"] });
afterAll(() => service[Symbol.asyncDispose]());

describe.skipIf(isBrowserMissing)("under a base path", () => {
  test("the reference tries operations in a readable panel, and deletes no plant until its id is typed", async () => {
    await using opened = await openPage(`${service.url}/docs`);
    const { page } = opened;
    await page.locator("input[placeholder='Token']:visible").first().fill(service.token);
    expect(await page.locator("text=headers only").count()).toBe(0);
    await page.locator("button:has-text('Test Request'):visible").first().click();
    const panel = page.getByRole("dialog");
    await panel.locator("text=Request Body").waitFor();
    const answered = page.waitForResponse((response) => response.request().method() === "POST");
    await page.locator("button:has-text('Send'):visible").first().click();
    const response = await answered;
    expect([response.status(), response.url()]).toEqual([201, `${service.url}/plants`]);
    expect(await harvest(service, service.token)).toEqual(["Monstera deliciosa"]);
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage, ...sessionStorage }]),
    );
    expect(kept).not.toContain(service.token);

    await panel.locator("text=201").first().waitFor();
    await inspect(page, "reference-panel", "color-contrast");
    // Nothing shows through it.
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const colors = await panel.evaluate((element) => {
        const { backgroundColor, opacity } = getComputedStyle(element);
        return [backgroundColor, opacity];
      });
      const opaque = colorScheme === "light" ? "rgb(253, 251, 245)" : "rgb(18, 23, 18)";
      expect(colors).toEqual([opaque, "1"]);
    }
    await page.emulateMedia({ colorScheme: null });
    // On a phone it fits, too, and its buttons have names.
    const wide = page.viewportSize();
    await page.setViewportSize({ width: 390, height: 700 });
    await page.waitForFunction(() => document.documentElement.scrollWidth === 390);
    expect((await panel.boundingBox())?.width).toBeLessThanOrEqual(390);
    await inspect(page, "390-reference-panel", "button-name");
    if (wide) await page.setViewportSize(wide);

    // It deletes no plant until somebody types its id.
    for (const id of [1, 7]) {
      await service.call("POST /plants", { body: JSON.stringify({ name: "Acer", id }) });
      expect((await service.call(`GET /plants/${id}`)).status).toBe(200);
    }
    const before = await harvest(service, service.token);
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "hidden" });
    await page.locator("text=Delete a plant").first().click();
    await page
      .locator("#api-1\\/tag\\/plants\\/DELETE\\/plants\\/\\{id\\} button:has-text('Test Request')")
      .click();
    const refused = page.waitForResponse((response) => response.request().method() === "DELETE");
    await page.locator("button:has-text('Send'):visible").first().click();
    expect((await refused).status()).toBe(404);
    expect(await harvest(service, service.token)).toEqual(before);
  });

  test("the console works, and opens the reference in a tab of its own", async () => {
    await using opened = await openPage(`${service.url}/`);
    const { page } = opened;
    await signIn(page, service.token);
    const beside = page.context().waitForEvent("page");
    await page.click("text=API reference");
    const reference = await beside;
    await reference.waitForURL(`${service.url}/docs*`, { waitUntil: "commit" });
    expect(await reference.evaluate(() => opener)).toBeNull();
    expect(await page.isVisible("#garden-title")).toBe(true);
    await reference.close();
  });
});
