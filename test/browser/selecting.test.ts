/** Selecting plants in the console, and what is done to all of them. */
import { expect } from "bun:test";
import { expectAccessible } from "./browser.ts";
import {
  deselectPlant,
  download,
  selectedNames,
  selectPlants,
  shownNames,
  twelvePlants,
  useConsole,
  waitForCount,
} from "./signed-in.ts";

/** Its tests also fail if the page logs errors, calls other hosts or violates its policy. */
const testPage = useConsole();

/** In the order of the list. */
const sixPlants = [
  { name: "Acer" },
  { name: "Betula" },
  { name: "Carex" },
  { name: "Dahlia" },
  { name: "Erica" },
  { name: "Fern" },
];

testPage(
  "a click with Shift selects all plants since the last one",
  { plants: sixPlants },
  async ({ page }) => {
    await selectPlants(page, "Betula");

    await page.click("#rows .row:has-text('Erica')", { modifiers: ["Shift"] });

    expect(await selectedNames(page)).toEqual(["Betula", "Carex", "Dahlia", "Erica"]);
    expect(await page.textContent("#selection-note")).toBe("4 selected");
    await expectAccessible(page, "selecting");
  },
);

testPage(
  "a second click on a box, and `x` on a selected plant, deselect it",
  { plants: sixPlants },
  async ({ page }) => {
    await selectPlants(page, "Betula", "Carex", "Dahlia");

    await deselectPlant(page, "Dahlia");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("x");

    expect(await selectedNames(page)).toEqual(["Betula"]);
  },
);

testPage("Escape deselects all plants", { plants: sixPlants }, async ({ page }) => {
  await selectPlants(page, "Betula", "Carex");

  await page.keyboard.press("Escape");

  expect(await selectedNames(page)).toEqual([]);
  expect(await page.isVisible("#selection")).toBe(false);
});

testPage(
  "`x` selects the focused plant, and an arrow key with Shift the next one, too",
  { plants: sixPlants },
  async ({ page }) => {
    await page.focus("#filter");

    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("x");
    expect(await selectedNames(page)).toEqual(["Acer"]);

    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+ArrowDown");
    expect(await selectedNames(page)).toEqual(["Acer", "Betula", "Carex"]);
    expect(await page.textContent("#selection-note")).toBe("3 selected");
  },
);

testPage(
  "the Delete key deletes all selected plants, and one undo brings them back",
  { plants: sixPlants },
  async ({ page, storedNames }) => {
    await selectPlants(page, "Acer", "Betula", "Carex");

    await page.keyboard.press("Delete");
    await page.waitForSelector("#undo:has-text('3 plants were deleted.')");
    expect(await storedNames()).toEqual(["Dahlia", "Erica", "Fern"]);
    expect(await shownNames(page)).toEqual(["Dahlia", "Erica", "Fern"]);
    expect(await page.isVisible("#selection")).toBe(false);

    await page.keyboard.press("z");
    await page.waitForSelector("#notice:has-text('3 plants are back.')");
    expect(await shownNames(page)).toEqual(["Acer", "Betula", "Carex", "Dahlia", "Erica", "Fern"]);
  },
);

testPage(
  "all plants that a search found can be exported",
  { plants: twelvePlants },
  async ({ page }) => {
    await page.fill("#filter", "officinalis");
    await waitForCount(page, "2 plants");
    await page.click("#select-all");

    const file = await download(page, "#export-selected");

    expect(file.name).toBe("selected-plants.csv");
    expect(file.text.split("\r\n")).toEqual([
      "\uFEFFid,name,tag",
      "4,Rosmarinus officinalis,herbs",
      "7,Salvia officinalis,herbs",
      "",
    ]);
    await page.waitForSelector("#notice:has-text('Exported 2 plants.')");
  },
);

testPage(
  "all plants that a search found can be moved to a tag",
  { plants: twelvePlants },
  async ({ page }) => {
    await page.fill("#filter", "officinalis");
    await waitForCount(page, "2 plants");
    await page.click("#select-all");

    await page.fill("#new-tag", "hall");
    await expectAccessible(page, "moving");
    await page.press("#new-tag", "Enter");

    await page.waitForSelector("#undo:has-text('2 plants have the tag “hall” now.')");
    await page.waitForSelector(".chip:has-text('hall 2')");
  },
);

testPage(
  "deleting more than 1,000 plants asks first, and neither Enter nor Escape means yes",
  { plants: Array.from({ length: 1_300 }, (_, index) => ({ name: `Plant ${index + 1}` })) },
  async ({ page, storedNames }) => {
    // Loads the rest of the list first.
    await page.click("#select-all");
    await page.waitForSelector("#selection-note:text-is('1,300 selected')");

    await page.click("#delete-selected");
    await page.waitForSelector("#confirm[open] #confirm-title:text-is('Delete the whole garden?')");
    await expectAccessible(page, "delete-garden");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#confirm", { state: "hidden" });
    await page.click("#delete-selected");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#confirm", { state: "hidden" });
    expect(await page.textContent("#selection-note")).toBe("1,300 selected");
    expect(await storedNames()).toHaveLength(1_300);

    await deselectPlant(page, "Plant 1");
    await page.click("#delete-selected");
    await page.click("#confirm-yes:text-is('Delete 1,299 plants')");
    await page.waitForSelector("#undo:has-text('1,299 plants were deleted.')");
    expect(await storedNames()).toEqual(["Plant 1"]);
  },
);
