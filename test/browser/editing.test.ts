/** Editing a plant in the console, in a real browser, while somebody else does, too. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { inspect } from "./browser.ts";
import {
  type OpenGarden,
  openCard,
  shownNames,
  somePlants,
  useConsole,
  waitForTitle,
} from "./signed-in.ts";

const testGarden = useConsole();

async function openForm(page: Page, name: string): Promise<void> {
  await openCard(page, name);
  await page.click("#plant-edit");
  await page.waitForSelector("#edit-name:focus");
}

/** Somebody else. */
async function change({ call }: OpenGarden, name: string, tag: string): Promise<void> {
  expect((await call("PUT /plants/1", JSON.stringify({ name, tag }))).status).toBe(200);
}

testGarden(
  "editing works by keys, and list, tags and count show the change at once",
  { plants: somePlants },
  async ({ page, call }) => {
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
    await page.waitForSelector(".opener:has-text('Ocimum sanctum'):focus");
    await page.waitForSelector(".chip:has-text('kitchen 2')");
    await page.waitForSelector(".chip:has-text('herbs 3')");
    const stored = await (await call("GET /plants/5")).json();
    expect(stored).toEqual({ name: "Ocimum sanctum", tag: "kitchen" });

    // Out of the list of its tag, too, and the keyboard goes on from somewhere.
    await page.click(".chip:has-text('kitchen')");
    await waitForTitle(page, "2 plants");
    await openForm(page, "Aloë vera");
    await page.fill("#edit-tag", "");
    await page.click("#edit-save");
    await waitForTitle(page, "1 plant");
    await page.waitForSelector("#garden-title:focus");
  },
);

testGarden(
  "editing starts from what the service has, and shows what somebody else changed in between",
  { plants: [{ name: "Fern", tag: "hall" }] },
  async (garden) => {
    const { page, stored } = garden;
    await change(garden, "Tree fern", "shade");
    await openCard(page, "Fern");
    await page.waitForSelector("#plant-title:has-text('Tree fern')");
    await page.click("#plant-edit");
    await page.fill("#edit-name", "My fern");
    await change(garden, "Royal fern", "");
    await page.click("#edit-save");
    await page.waitForSelector("#plant-note:has-text(' changed this plant (')");
    await page.waitForSelector("#plant-note:has-text('and is “Royal fern” now.')");
    // Only they changed the tag.
    expect(await page.inputValue("#edit-tag")).toBe("");
    await inspect(page, "edit-conflict");
    // The focused button loses neither version.
    await page.keyboard.press("Enter");
    await page.waitForSelector("#edit-name:focus");
    expect(await page.inputValue("#edit-name")).toBe("My fern");
    await page.click("#edit-cancel:text-is('Discard yours')");
    expect(await shownNames(page)).toEqual(["Royal fern"]);

    await openForm(page, "Royal fern");
    await page.fill("#edit-name", "My fern");
    for (const name of ["Theirs", "Theirs again"]) {
      await change(garden, name, "");
      await page.click("#edit-save");
      await page.waitForSelector(`#plant-note:has-text('and is “${name}” now.')`);
      expect(await stored()).toEqual([name]);
    }
    await page.click("#edit-save:text-is('Save yours instead')");
    await page.waitForSelector("#notice:has-text('“My fern” was saved.')");
    expect(await stored()).toEqual(["My fern"]);
  },
);

testGarden(
  "editing asks before it drops text, and adds a plant again that somebody deleted",
  { plants: somePlants.slice(0, 3) },
  async ({ page, call, stored }) => {
    await call("DELETE /plants/1");
    await openCard(page, "Monstera");
    await page.waitForSelector("#plant-note:has-text(' deleted this plant (')");
    expect(await page.locator("#plant button:visible").allTextContents()).toEqual([
      "Add it again",
      "Close",
    ]);
    await page.click("#plant-close");
    expect(await shownNames(page)).toEqual(["Ficus lyrata", "Dryopteris filix-mas"]);
    await openForm(page, "Ficus");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#plant", { state: "hidden" });
    await openForm(page, "Ficus");
    await page.fill("#edit-name", "Ficus elastica");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#confirm-title:has-text('Discard your changes?')");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#confirm", { state: "hidden" });
    await call("DELETE /plants/2");
    await page.click("#edit-save");
    await page.waitForSelector("#plant-note:has-text('Your changes aren’t saved.')");
    await page.waitForSelector("#edit-resume:focus");
    expect(await page.isVisible("#edit-save")).toBe(false);
    await page.press("#edit-name", "Enter");
    await page.click("#plant-again:text-is('Add it again')");
    await page.waitForSelector("#notice:has-text('“Ficus elastica” was added with the id 2.')");
    expect(await stored()).toEqual(["Ficus elastica", "Dryopteris filix-mas"]);
  },
);
