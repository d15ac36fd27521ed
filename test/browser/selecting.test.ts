/** Selecting plants in the console and deleting them, many at a time. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { inspect, takePicture } from "./browser.ts";
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
    expect(await page.locator("#rows input").count()).toBe(0);
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
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Space");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Shift+Space");
    await page.click("#delete-selected:text-is('Delete 3 plants')");
    await page.waitForSelector("#undo:has-text('3 plants were deleted.')");
    expect(await stored()).toEqual(names.slice(3));
    expect(await shownNames(page)).toEqual(names.slice(3));
    expect(await page.isVisible("#selection")).toBe(false);
    await page.keyboard.press("z");
    await page.waitForSelector("#notice:has-text('3 plants are back.')");
    expect(await shownNames(page)).toEqual(names);
    expect(await stored()).toEqual(names);
  },
);

testGarden(
  "all plants with a tag, or all that match, are deleted in a few requests, loaded or not",
  {
    plants: Array.from({ length: 1_300 }, (_, index) => ({
      name: `Plant ${index + 1}`,
      tag: index % 2 === 0 ? "even" : "odd",
    })),
  },
  async ({ page, stored }) => {
    const requests: string[] = [];
    page.on("request", (request) => {
      const { pathname } = new URL(request.url());
      if (/^\/plants/.test(pathname)) requests.push(`${request.method()} ${pathname}`);
    });
    await page.click(".chip:has-text('odd')");
    await waitForTitle(page, "650 plants");
    await page.keyboard.press("x");
    await page.click("#select-all:text-is('Select all 650 with this tag')");
    await page.waitForSelector("#select-all:text-is('Select none')");
    await page.click(".row:has-text('Plant 4')");
    await takePicture(page, "selecting-all");
    requests.length = 0;
    await page.click("#delete-selected:text-is('Delete 649 plants')");
    await page.click("#confirm-yes:text-is('Delete 649 plants')");
    await page.waitForSelector("#undo:has-text('649 plants were deleted.')");
    expect(requests.slice(0, 2)).toEqual(["GET /plants", "POST /plants/bulk-delete"]);
    expect(await stored()).toHaveLength(651);
    expect(await shownNames(page)).toEqual(["Plant 4"]);
    await page.click("#undo-button");
    await waitForTitle(page, "650 plants");
    expect(await stored()).toHaveLength(1_300);

    await page.click(".chip:has-text('odd')");
    await page.fill("#filter", "plant 12");
    await waitForTitle(page, "132 plants");
    await page.click("#select");
    await page.click("#select-all:text-is('Select all 132 that match')");
    await page.click("#delete-selected");
    await page.click("#confirm-yes");
    await page.waitForSelector("#undo:has-text('132 plants were deleted.')");
    expect(await stored()).toHaveLength(1_168);
  },
);

testGarden(
  "what somebody else has changed stays, and is not restored as it was",
  { plants: somePlants.slice(0, 4) },
  async ({ page, call, stored }) => {
    await page.click("#select");
    await page.click(".row:has-text('Monstera')");
    await page.click(".row:has-text('Dryopteris')", { modifiers: ["Shift"] });
    await call("PUT /plants/2", '{"name":"Ficus elastica"}');
    await call("DELETE /plants/3");
    await page.click("#delete-selected");
    await page.waitForSelector(
      "#notice:has-text('Somebody else changed or deleted 2 of these plants.')",
    );
    await page.waitForSelector("#undo:has-text('“Monstera deliciosa” was deleted.')");
    expect(await stored()).toEqual(["Ficus elastica", "Rosmarinus officinalis"]);
    await page.waitForSelector(".row:has-text('Ficus elastica')");
    await page.click("#undo-button");
    await waitForTitle(page, "3 plants");
    expect(await stored()).toEqual([
      "Monstera deliciosa",
      "Ficus elastica",
      "Rosmarinus officinalis",
    ]);
  },
);

const hundredAndTwo = Array.from({ length: 102 }, (_, index) => ({ name: `Plant ${index + 1}` }));

testGarden(
  "more than 100 plants, or a whole garden, are deleted only after a confirmation",
  { plants: hundredAndTwo },
  async ({ page, stored }) => {
    const ask = async (title: string) => {
      await page.click("#delete-selected");
      await page.waitForSelector(`#confirm[open] #confirm-title:text-is('${title}')`);
    };
    await page.click("#select");
    await page.click("#select-all:text-is('Select all 102 plants')");
    await ask("Delete the whole garden?");
    await inspect(page, "delete-garden");
    // The focused button and Escape mean no, and the selection stays.
    await page.keyboard.press("Enter");
    await page.waitForSelector("#confirm", { state: "hidden" });
    await ask("Delete the whole garden?");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#confirm", { state: "hidden" });
    expect(await page.textContent("#selection-note")).toBe("102 selected");
    await page.click(".row:has-text('Plant 1')");
    await ask("Delete 101 plants?");
    await page.keyboard.press("Escape");
    expect(await stored()).toHaveLength(102);
    await page.click(".row:has-text('Plant 2')");
    await page.click("#delete-selected:text-is('Delete 100 plants')");
    await page.waitForSelector("#undo:has-text('100 plants were deleted.')");
    expect(await stored()).toEqual(["Plant 1", "Plant 2"]);

    // Two plants, but all of them.
    await page.keyboard.press("x");
    await page.click("#select-all");
    await ask("Delete the whole garden?");
    await page.click("#confirm-yes:text-is('Delete 2 plants')");
    await page.waitForSelector("#empty:visible");
    expect(await stored()).toEqual([]);
    await page.click("#undo-button");
    await waitForTitle(page, "2 plants");
  },
);

testGarden(
  "selecting all takes the plants that the page has shown, not the ones that come later",
  { plants: hundredAndTwo },
  async ({ page, call, stored }) => {
    await page.click("#select");
    await page.click(".row:has-text('Plant 3')");
    await page.click(".row:has-text('Plant 1')", { modifiers: ["Shift"] });
    expect(await checkedNames(page)).toEqual(["Plant 1", "Plant 2", "Plant 3"]);
    await page.click("#select-all");
    await call("POST /plants", '{"name":"Ivy"}');
    await page.waitForSelector("#news:text-is('1 new plant')");
    await page.click("#delete-selected:text-is('Delete 102 plants')");
    await page.click("#confirm-yes");
    await page.waitForSelector("#undo:has-text('102 plants were deleted.')");
    expect(await stored()).toEqual(["Ivy"]);
  },
);
