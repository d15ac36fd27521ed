/** Plants that leave the console or enter it otherwise: copied, imported, exported. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { inspect, takePicture } from "./browser.ts";
import { shownNames, somePlants, useConsole } from "./signed-in.ts";

const testGarden = useConsole();

async function chooseFile(page: Page, name: string, text: string | Buffer): Promise<void> {
  const buffer = Buffer.from(text as string);
  await page.setInputFiles("#import-file", { name, mimeType: "text/plain", buffer });
}

function waitForNote(page: Page, pattern: RegExp) {
  return page.locator("#transfer-note", { hasText: pattern }).waitFor();
}

async function exportPlants(page: Page): Promise<{ name: string; text: string }> {
  const downloading = page.waitForEvent("download");
  await page.click("#export");
  const download = await downloading;
  const chunks = await Array.fromAsync(await download.createReadStream());
  return { name: download.suggestedFilename(), text: Buffer.concat(chunks).toString() };
}

const longName = "  A very long name, which the list cuts off\tand\nbreaks  ".padEnd(150, "y");

testGarden(
  "id, name and tag of a plant can be copied by keys",
  { plants: [{ id: 7, name: longName, tag: "  hall " }], permissions: ["clipboard-read"] },
  async ({ page }) => {
    await page.focus(".opener");
    await page.keyboard.press("Enter");
    for (const [field, text] of [
      ["id", "7"],
      ["tag", "  hall "],
      ["name", longName],
    ] as const) {
      await page.focus(`#copy-${field}`);
      await page.keyboard.press("Enter");
      const pasted = await page.evaluate(() => navigator.clipboard.readText());
      expect(pasted).toBe(text);
    }
    expect(await page.textContent("#copy-note")).toBe("The name was copied.");
    await inspect(page, "plant");
    await page.keyboard.press("Escape");
    expect(await page.evaluate(() => document.activeElement?.className)).toBe("opener");
  },
);

testGarden(
  "an import shows what it would do, names invalid rows, and sends nothing before it is told to",
  {},
  async ({ page, stored }) => {
    await page.waitForSelector("#first-file:visible");
    const rows = ["id;name;tag", ";Aloe;hall", "x; ;", "1;Fern;hall", "7;=1+1;a tag, with commas"];
    await chooseFile(page, "plants.csv", rows.join("\r\n"));
    await waitForNote(page, /^Nothing was sent: 1 of 4 rows is invalid\. Fix it and import/);
    expect(await page.locator("#transfer-problems li").allTextContents()).toEqual([
      expect.stringMatching(/^Line 3 the id must be an integer/),
    ]);
    await inspect(page, "import-invalid");
    rows.splice(2, 1);
    await chooseFile(page, "plants.csv", rows.join("\r\n"));
    await waitForNote(page, /^3 rows, all valid\. Nothing was sent yet\.$/);
    expect(await page.locator("#transfer-samples tr").allInnerTexts()).toEqual([
      "next free\tAloe\thall",
      "1\tFern\thall",
      "7\t=1+1\ta tag, with commas",
    ]);
    await inspect(page, "import-preview");
    expect(await stored()).toEqual([]);
    await page.keyboard.press("Enter");
    await waitForNote(page, /^Added 3 plants in \d+\.\d s\.$/);
    await page.waitForSelector("#garden-title:text-is('3 plants')");
    // The id of a later row is not assigned to an earlier one.
    expect(await shownNames(page)).toEqual(["Fern", "=1+1", "Aloe"]);
    expect(await page.textContent("#announcer")).toContain("3 plants");
    await takePicture(page, "imported");
    await page.click("#undo:has-text('3 plants were imported from “plants.csv”.') #undo-button");
    await page.waitForSelector("#notice:has-text('The import was undone: 3 plants deleted.')");
    await page.waitForSelector("#empty:visible");
    await page.click("#transfer-actions button:text-is('Close')");
    await page.waitForSelector("#garden-title:focus");
  },
);

testGarden(
  "an export has the plants that are shown, and warns of what spreadsheets take for formulas",
  { plants: [...somePlants, { name: '=HYPERLINK("x")', tag: "formulas" }] },
  async ({ page }) => {
    await page.click(".chip:has-text('terrace')");
    await page.waitForSelector("#garden-title:text-is('2 plants')");
    expect(await exportPlants(page)).toEqual({
      name: "plants-terrace.csv",
      text: "\uFEFFid,name,tag\r\n9,Lavandula angustifolia,terrace\r\n10,Olea europaea,terrace\r\n",
    });
    await page.click(".chip:has-text('no tag')");
    await page.waitForSelector("#garden-title:text-is('1 plant')");
    expect(await exportPlants(page)).toEqual({
      name: "untagged-plants.csv",
      text: "\uFEFFid,name,tag\r\n8,Acer palmatum ‘Bloodgood’,\r\n",
    });
    await page.click(".chip:has-text('no tag')");
    await page.waitForSelector("#garden-title:text-is('13 plants')");
    await page.fill("#filter", "officinalis");
    await page.waitForSelector("#garden-title:text-is('2 plants')");
    expect((await exportPlants(page)).name).toBe("plants-officinalis.csv");
    await page.press("#filter", "Escape");
    await page.waitForSelector("#garden-title:text-is('13 plants')");
    const all = await exportPlants(page);
    expect([all.name, all.text.split("\r\n").at(-2)]).toEqual([
      "plants.csv",
      '13,"=HYPERLINK(""x"")",formulas',
    ]);
    await waitForNote(page, /^Exported 13 plants\. 1 plant has a name or tag that starts with =/);
    await takePicture(page, "exported");
  },
);
