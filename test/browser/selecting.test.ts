/** Selecting plants in the console and deleting them, many at a time. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { inspect } from "./browser.ts";
import { shownNames, somePlants, useConsole, waitForTitle } from "./signed-in.ts";

const testGarden = useConsole();

function checkedNames(page: Page): Promise<string[]> {
  return page.locator(".row:has(:checked) .name").allTextContents();
}

testGarden(
  "plants are selected by clicks, by Shift for a range and by keys, and deleted together",
  { plants: somePlants },
  async ({ page, stored }) => {
    const names = somePlants.map(({ name }) => name);
    await page.click("#select");
    expect(await page.isVisible("#delete-selected")).toBe(false);
    await page.click(".row:has-text('Ficus')");
    await page.click(".row:has-text('Thymus')", { modifiers: ["Shift"] });
    expect(await checkedNames(page)).toEqual(names.slice(1, 6));
    await page.click(".row:has-text('Dryopteris') input");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Space");
    expect(await checkedNames(page)).toEqual(names.slice(3, 6));
    expect(await page.textContent("#selection-note")).toBe("3 selected");
    await inspect(page, "selecting");
    await page.keyboard.press("Escape");
    expect(await page.locator("#rows input").count()).toBe(0);

    await page.keyboard.press("x");
    await page.focus("#filter");
    for (const key of ["ArrowDown", "Space", "ArrowDown", "ArrowDown"]) {
      await page.keyboard.press(key);
    }
    await page.keyboard.press("Shift+Space");
    await page.keyboard.press("Shift+ArrowDown");
    await page.click("#delete-selected:text-is('Delete 4 plants')");
    await page.waitForSelector("#undo:has-text('4 plants were deleted.')");
    expect(await stored()).toEqual(names.slice(4));
    expect(await shownNames(page)).toEqual(names.slice(4));
    expect(await page.isVisible("#selection")).toBe(false);
    await page.keyboard.press("z");
    await page.waitForSelector("#notice:has-text('4 plants are back.')");
    expect(await shownNames(page)).toEqual(names);
    expect(await stored()).toEqual(names);
  },
);

const many = Array.from({ length: 1_300 }, (_, index) => ({
  name: `Plant ${index + 1}`,
  tag: index % 2 === 0 ? "even" : "odd",
}));

testGarden(
  "all plants that match get another tag or are deleted after a confirmation, loaded or not",
  { plants: many },
  async ({ page, stored }) => {
    await page.click(".chip:has-text('odd')");
    await waitForTitle(page, "650 plants");
    await page.fill("#filter", "plant 12");
    await waitForTitle(page, "72 plants");
    await page.click("#select");
    await page.click("#select-all:text-is('Select all 72 that match')");
    await page.click("#tag-selected");
    await page.waitForSelector("#new-tag:focus");
    await page.keyboard.type("hall");
    await inspect(page, "tagging");
    await page.click("#tag-button:text-is('Change 72 plants')");
    await page.waitForSelector("#undo:has-text('72 plants have the tag “hall” now.')");
    await page.waitForSelector(".chip:has-text('hall 72')");
    await page.waitForSelector("#no-match");
    await page.click("#undo-button");
    await waitForTitle(page, "72 plants");

    await page.press("#filter", "Escape");
    await waitForTitle(page, "1,300 plants");
    await page.keyboard.press("Escape");
    await page.keyboard.press("x");
    await page.click("#select-all:text-is('Select all 1,300 plants')");
    await page.waitForSelector("#select-all:text-is('Select none')");
    await page.click("#delete-selected:text-is('Delete 1,300 plants')");
    await page.waitForSelector("#confirm[open] #confirm-title:text-is('Delete the whole garden?')");
    await inspect(page, "delete-garden");
    // The focused button and Escape mean no, and the selection stays.
    await page.keyboard.press("Enter");
    await page.waitForSelector("#confirm", { state: "hidden" });
    await page.click("#delete-selected");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#confirm", { state: "hidden" });
    expect(await page.textContent("#selection-note")).toBe("1,300 selected");
    expect(await stored()).toHaveLength(1_300);
    await page.click(".row:has-text('Plant 1')");
    await page.click("#delete-selected:text-is('Delete 1,299 plants')");
    await page.click("#confirm-yes:text-is('Delete 1,299 plants')");
    await page.waitForSelector("#undo:has-text('1,299 plants were deleted.')");
    expect(await stored()).toEqual(["Plant 1"]);
    await page.click("#undo-button");
    await waitForTitle(page, "1,300 plants");
  },
);
