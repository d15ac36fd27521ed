/** Editing a plant in the console, in a real browser, while somebody else does, too. */
import { afterAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { startService } from "../end-to-end/running-service.ts";
import { inspect, isBrowserMissing, watchPages } from "./browser.ts";
import { harvest, makeGarden, openGarden, shownNames, somePlants } from "./signed-in.ts";

watchPages();
const service = await startService();
afterAll(() => service[Symbol.asyncDispose]());

describe.skipIf(isBrowserMissing)("editing a plant", () => {
  test("works by keys, and list, tags, chart and count show the change at once", async () => {
    const token = await makeGarden(service, somePlants);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    const { keyboard } = page;
    await page.focus(".opener:has-text('Ocimum')");
    await keyboard.press("Enter");
    await page.focus("#plant-edit");
    await keyboard.press("Enter");
    await page.waitForSelector("#edit-name:focus");
    await keyboard.press("ControlOrMeta+a");
    await keyboard.type("Ocimum sanctum");
    await keyboard.press("Tab");
    await keyboard.press("ControlOrMeta+a");
    await keyboard.type("kitchen");
    await keyboard.press("Enter");
    await page.waitForSelector("#notice:has-text('“Ocimum sanctum” was saved.')");
    expect(await page.isVisible("#plant")).toBe(false);
    const focused = await page.evaluate(() => document.activeElement?.textContent);
    expect(focused).toBe("Ocimum sanctum");
    expect((await shownNames(page))[4]).toBe("Ocimum sanctum");
    expect(await page.textContent("#garden-title")).toBe("12 plants");
    const lines = await page.locator("#chart li").allTextContents();
    expect(lines).toContain("kitchen 2");
    expect(lines).toContain("herbs 3");
    await page.fill("#filter", "sanctum kitchen");
    expect(await shownNames(page)).toEqual(["Ocimum sanctum"]);
    expect(await readPlant(token, 5)).toEqual({ name: "Ocimum sanctum", tag: "kitchen" });

    // Out of the list of its tag, too, and the keyboard goes on from somewhere.
    await page.fill("#filter", "");
    await page.click(".chip:has-text('kitchen')");
    await page.waitForSelector("#garden-title:text-is('2 plants')");
    await edit(page, "Aloë vera", { tag: "" });
    await page.waitForSelector("#garden-title:text-is('1 plant')");
    await page.waitForSelector("#filter:focus");
    expect(await page.textContent(".chip:has-text('no tag')")).toBe("no tag2");
  });

  test("shows each error at its field, and keeps line breaks in a field nobody touched", async () => {
    const token = await makeGarden(service, [{ name: "Two\nlines", tag: "hall" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await edit(page, "Two", { name: " ", tag: "t".repeat(101) });
    await page.waitForSelector("#edit-name[aria-invalid=true]:focus");
    for (const field of ["name", "tag"]) {
      expect(await page.textContent(`#edit-${field}-error`)).toMatch(/^Must .+\.$/);
    }
    await page.fill("#edit-name", "Twolines");
    expect(await page.textContent("#edit-name-error")).toBe("");
    await page.fill("#edit-tag", "porch");
    await page.click("#edit-save");
    await page.waitForSelector("#notice:has-text('was saved')");
    expect(await readPlant(token, 1)).toEqual({ name: "Two\nlines", tag: "porch" });
  });

  test("starts from what the service has, and shows what somebody else changed in between", async () => {
    const token = await makeGarden(service, [{ name: "Fern", tag: "hall" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await change(token, "Tree fern", "shade");
    await page.click(".opener");
    await page.click("#plant-edit");
    await page.waitForSelector("#edit-name:focus");
    expect(await page.inputValue("#edit-name")).toBe("Tree fern");
    await page.fill("#edit-name", "My fern");
    await change(token, "Royal fern", "");
    await page.click("#edit-save");
    await page.waitForSelector("#edit-note:has-text('Somebody changed this plant')");
    expect(await page.textContent("#edit-name-theirs")).toBe("Theirs: “Royal fern”");
    expect(await page.textContent("#edit-tag-theirs")).toBe("Theirs: none");
    expect(await page.inputValue("#edit-name")).toBe("My fern");
    await inspect(page, "edit-conflict");
    // The safe choice has the focus.
    await page.keyboard.press("Enter");
    await page.waitForSelector("#plant", { state: "hidden" });
    expect(await shownNames(page)).toEqual(["Royal fern"]);
    expect(await harvest(service, token)).toEqual(["Royal fern"]);

    await page.click(".opener");
    await page.click("#plant-edit");
    await page.fill("#edit-name", "My fern");
    for (const name of ["Theirs", "Theirs again"]) {
      await change(token, name, "");
      await page.click("#edit-save");
      await page.waitForSelector(`#edit-name-theirs:has-text('“${name}”')`);
      expect(await harvest(service, token)).toEqual([name]);
    }
    await page.click("#edit-save:text-is('Save yours instead')");
    await page.waitForSelector("#notice:has-text('“My fern” was saved.')");
    expect(await harvest(service, token)).toEqual(["My fern"]);
  });

  test("says that the plant was deleted, before and after something was typed", async () => {
    const token = await makeGarden(service, somePlants.slice(0, 3));
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await service.call("DELETE /plants/1", { token });
    await page.click(".opener:has-text('Monstera')");
    await page.click("#plant-edit");
    await page.waitForSelector(
      "#plant-note:text-is('Somebody deleted this plant in the meantime.')",
    );
    await page.click("#plant-close");
    expect(await shownNames(page)).toEqual(["Ficus lyrata", "Dryopteris filix-mas"]);
    await page.click(".opener:has-text('Ficus')");
    await page.click("#plant-edit");
    await page.fill("#edit-name", "Ficus elastica");
    await service.call("DELETE /plants/2", { token });
    await page.click("#edit-save");
    await page.waitForSelector("#edit-note:has-text('Your changes weren’t saved.')");
    expect(await page.isVisible("#edit-save")).toBe(false);
    await page.press("#edit-name", "Enter");
    await page.click("#edit-cancel:text-is('Close')");
    expect(await page.textContent("#garden-title")).toBe("1 plant");
    expect(await harvest(service, token)).toEqual(["Dryopteris filix-mas"]);
  });

  test("whose response is lost can be saved again", async () => {
    const token = await makeGarden(service, somePlants.slice(0, 2));
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.route("**/plants/1?*", async (route) => {
      if (route.request().method() !== "PUT") return route.continue();
      await route.fetch();
      await route.abort();
    });
    await edit(page, "Monstera deliciosa", { name: "Monstera" });
    await page.waitForSelector("#edit-error:has-text('It’s safe to save again.')");
    await page.unroute("**/plants/1?*");
    await page.click("#edit-save");
    await page.waitForSelector("#notice:has-text('“Monstera” was saved.')");
    expect(await harvest(service, token)).toEqual(["Monstera", "Ficus lyrata"]);
  });

  async function edit(
    page: Page,
    name: string,
    values: { readonly name?: string; readonly tag?: string },
  ): Promise<void> {
    await page.click(`.opener:has-text('${name}')`);
    await page.click("#plant-edit");
    await page.waitForSelector("#edit-name:focus");
    for (const [field, value] of Object.entries(values)) await page.fill(`#edit-${field}`, value);
    await page.click("#edit-save");
  }

  /** Somebody else. */
  async function change(token: string, name: string, tag: string): Promise<void> {
    const body = JSON.stringify({ name, tag });
    expect((await service.call("PUT /plants/1", { token, body })).status).toBe(200);
  }

  async function readPlant(token: string, id: number): Promise<unknown> {
    return (await service.call(`GET /plants/${id}`, { token })).json();
  }
});
