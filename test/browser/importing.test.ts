/** Importing plants in the console: from a chosen or dropped file, and from the clipboard. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { expectAccessible } from "./browser.ts";
import { chooseImportFile, useConsole, waitForCount } from "./signed-in.ts";

/** Its tests also fail if the page logs errors, calls other hosts or violates its policy. */
const testPage = useConsole();

/** Pastes text from the clipboard into what has the focus. */
async function paste(page: Page, text: string): Promise<void> {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.evaluate((pasted) => navigator.clipboard.writeText(pasted), text);
  await page.keyboard.press("Control+v");
}

testPage("typed rows are still there after an error in them", {}, async ({ page }) => {
  await page.click("#open-import");
  await page.fill("#import-text", "id,name\nx,Fern");
  await page.click("#import-typed");
  await page.waitForSelector("#import-note:has-text('1 of 1 row is invalid')");
  await page.click("#import-next:text-is('Close')");

  await page.click("#open-import");

  expect(await page.inputValue("#import-text")).toBe("id,name\nx,Fern");
});

testPage(
  "a chosen file is previewed, and nothing is sent yet",
  { plants: [{ name: "Acer", tag: "hall" }, { name: "Betula" }] },
  async ({ page, storedNames }) => {
    await page.click("#open-import");
    const choosing = page.waitForEvent("filechooser");
    await expectAccessible(page, "import-format");
    await page.click("#import-next:text-is('Choose a file')");

    const buffer = Buffer.from("id,name,tag\n1,Acer rubrum,pond\n,Carex,\n,Betula,\n");
    await (await choosing).setFiles({ name: "plants.csv", mimeType: "text/csv", buffer });

    await page.waitForSelector("#import-next:text-is('Add 1 plant'):focus");
    expect(await page.locator("#import-rows div").allTextContents()).toEqual([
      "1Acer → Acer rubrum (tag hall → pond)",
      "newCarex ",
    ]);
    await expectAccessible(page, "import-preview");
    expect(await storedNames()).toEqual(["Acer", "Betula"]);
  },
);

testPage(
  "an import adds plants, changes others if asked to, and can be undone",
  { plants: [{ name: "Acer", tag: "hall" }, { name: "Betula" }] },
  async ({ page, store, storedNames }) => {
    await chooseImportFile(page, "id,name,tag", "1,Acer rubrum,pond", ",Carex,", ",Betula,");
    await page.waitForSelector("#import-next:text-is('Add 1 plant')");
    await page.check("#import-changes");

    await page.click("#import-next:text-is('Add 1 and change 1 plant')");
    await page.waitForSelector("#import-undo");
    expect(await storedNames()).toEqual(["Acer rubrum", "Betula", "Carex"]);
    // The card offers the undo, so the foot of the page doesn't.
    expect(await page.locator("#undo").count()).toBe(0);
    await expectAccessible(page, "import-done");

    await page.click("#import-undo");
    await page.waitForSelector("#import-note:has-text('1 plant deleted, 1 plant changed back.')");
    expect(await storedNames()).toEqual(["Acer", "Betula"]);
    expect((await store.get(1)).tag).toBe("hall");

    await page.keyboard.press("Escape");
    await page.waitForSelector("#import", { state: "detached" });
  },
);

testPage(
  "“Stop” waits for the request under way, and an undo deletes what it added",
  {},
  async ({ page, storedNames }) => {
    const isReleased = Promise.withResolvers<void>();
    await page.route("**/plants/bulk", async (route) => {
      await isReleased.promise;
      await route.continue();
    });
    // Rows with ids go first, in a request of their own.
    await chooseImportFile(page, "id,name", "7,Acer", ",Betula");
    const firstRequest = page.waitForRequest("**/plants/bulk");
    await page.click("#import-next:text-is('Add 2 plants')");
    await firstRequest;

    await page.click("#import-next:text-is('Stop')");
    await page.waitForSelector("#import-note:text-is('Stopping…')");
    await page.waitForSelector("#import-next:text-is('Stop now'):focus");
    await expectAccessible(page, "import-stopping");
    isReleased.resolve();
    await page.waitForSelector("#import-note:has-text('Stopped. Added 1 plant in ')");
    expect(await storedNames()).toEqual(["Acer"]);

    await page.click("#import-undo");
    await page.waitForSelector("#import-note:has-text('The import was undone: 1 plant deleted.')");
    expect(await storedNames()).toEqual([]);
  },
);

testPage(
  "a file that is dropped on the page is previewed",
  { plants: [{ name: "Acer" }] },
  async ({ page }) => {
    const dataTransfer = await page.evaluateHandle(() => {
      const data = new DataTransfer();
      data.items.add(new File(["name\nCarex\n"], "list.csv"));
      return data;
    });

    await page.dispatchEvent("#rows .row", "dragover", { dataTransfer });
    await page.waitForSelector(".drop");
    await page.dispatchEvent("#rows .row", "drop", { dataTransfer });

    await page.waitForSelector("#import-next:text-is('Add 1 plant')");
    expect(await page.textContent("#import-title")).toBe("Import “list.csv”");
    expect(await page.locator(".drop").count()).toBe(0);
  },
);

testPage(
  "a pasted list of names is previewed, and Enter adds the plants",
  { plants: [{ name: "Acer" }] },
  async ({ page, storedNames }) => {
    await page.waitForSelector("#rows .row");

    await paste(page, "Betula\nCarex\n");
    await page.waitForSelector("#import-next:text-is('Add 2 plants'):focus");
    expect(await storedNames()).toEqual(["Acer"]);

    await page.keyboard.press("Enter");
    await waitForCount(page, "3 plants");
    expect(await storedNames()).toEqual(["Acer", "Betula", "Carex"]);
  },
);

testPage(
  "rows of a spreadsheet that are pasted into the name field become an import",
  { plants: [{ name: "Acer" }] },
  async ({ page }) => {
    await page.click("#open-add");
    await page.waitForSelector("#add-name:focus");

    await paste(page, "Dahlia\tbed\r\nErica\t\r\n");

    await page.waitForSelector("#import-next:text-is('Add 2 plants'):focus");
    expect(await page.locator("#import-rows dd").allTextContents()).toEqual([
      "Dahlia bed",
      "Erica ",
    ]);
    expect(await page.inputValue("#add-name")).toBe("");
  },
);

testPage(
  "one cell is pasted into the name field, without its line break",
  { plants: [{ name: "Acer" }] },
  async ({ page }) => {
    await page.click("#open-add");
    await page.waitForSelector("#add-name:focus");

    await paste(page, "Betula\r\n");

    expect(await page.inputValue("#add-name")).toBe("Betula");
    expect(await page.locator("#import").count()).toBe(0);
  },
);

testPage(
  "lines that are pasted into the search are no import",
  { plants: [{ name: "Acer" }] },
  async ({ page }) => {
    await page.focus("#filter");

    await paste(page, "two\nlines");

    expect(await page.inputValue("#filter")).toContain("lines");
    expect(await page.locator("#import").count()).toBe(0);
  },
);
