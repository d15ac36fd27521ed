/** The console without a mouse. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { expectAccessible } from "./browser.ts";
import { shownNames, twelvePlants, useConsole, waitForCount } from "./signed-in.ts";

/** Its tests also fail if the page logs errors, calls other hosts or violates its policy. */
const testPage = useConsole();

const threePlants = [{ name: "Acer" }, { name: "Betula" }, { name: "Carex" }];

function focusedText(page: Page) {
  return page.evaluate(() => document.activeElement?.textContent);
}

testPage(
  "keys alone sign in and add plants one after another",
  { isSignedIn: false },
  async ({ page, token, store }) => {
    await page.keyboard.type(token);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#empty");

    await page.keyboard.press("n");
    await page.waitForSelector("#add-name:focus");
    await page.keyboard.type("Acer");
    await page.keyboard.press("Tab");
    await page.keyboard.type("hall");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".row:has-text('Acer')");
    await page.waitForSelector("#add-name:focus");
    await page.keyboard.type("Betula");
    await page.keyboard.press("Tab");
    await page.keyboard.type("pond");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".row:has-text('Betula')");

    expect(await Array.fromAsync(store.list())).toMatchObject([
      { name: "Acer", tag: "hall" },
      { name: "Betula", tag: "pond" },
    ]);
  },
);

testPage(
  "keys alone search, go down to what was found, and clear the search",
  { plants: threePlants },
  async ({ page }) => {
    await page.keyboard.press("/");
    await page.keyboard.type("betula");
    await waitForCount(page, "1 plant");
    await page.keyboard.press("ArrowDown");
    expect(await focusedText(page)).toBe("Betula");

    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Escape");
    await waitForCount(page, "3 plants");
  },
);

testPage(
  "arrow keys lead from the title into the list, and Enter and Escape open and close a plant",
  { plants: threePlants },
  async ({ page }) => {
    // The title has the focus after signing in.
    await page.focus("#garden-title");

    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#edit-name:focus");
    expect(await page.inputValue("#edit-name")).toBe("Betula");

    await page.keyboard.press("Escape");
    await page.waitForSelector(".opener:has-text('Betula'):focus");
  },
);

testPage(
  "the Delete key deletes the focused plant, and the focus goes on and comes back",
  { plants: threePlants },
  async ({ page }) => {
    await page.focus(".opener:has-text('Betula')");

    await page.keyboard.press("Delete");
    await page.waitForSelector("#undo:has-text('“Betula” was deleted.')");
    expect(await shownNames(page)).toEqual(["Acer", "Carex"]);
    expect(await focusedText(page)).toBe("Carex");

    await page.keyboard.press("z");
    await waitForCount(page, "3 plants");
    expect(await focusedText(page)).toBe("Betula");
  },
);

testPage("`?` shows all keys", {}, async ({ page }) => {
  await page.keyboard.press("?");

  await page.waitForSelector("#keys[open]");
  await expectAccessible(page, "keys");
  await page.keyboard.press("Escape");
  await page.waitForSelector("#keys", { state: "hidden" });
});

testPage("keys that are single letters can be turned off", {}, async ({ page }) => {
  await page.click("#open-keys");
  await page.uncheck("#use-letters");
  await page.keyboard.press("Escape");
  await page.waitForSelector("#keys", { state: "hidden" });

  await page.keyboard.press("n");

  expect(await page.isVisible("#add")).toBe(false);
});

testPage(
  "Tab leads from the search to the actions, one plant, and the tags",
  { plants: twelvePlants },
  async ({ page }) => {
    await page.waitForSelector(".chip");
    await page.focus("#filter");

    const focused: string[] = [];
    for (let presses = 0; presses < 10; presses++) {
      await page.keyboard.press("Tab");
      const name = await page.evaluate(() => {
        const element = document.activeElement as HTMLElement;
        return element.id || element.getAttribute("aria-label") || element.textContent;
      });
      focused.push(name);
    }

    expect(focused).toEqual([
      "open-import",
      "export",
      "open-add",
      "select-all",
      "sort-name",
      "sort-tag",
      "sort-id",
      "Select Acer palmatum ‘Bloodgood’",
      "Acer palmatum ‘Bloodgood’",
      "herbs 4",
    ]);
  },
);
