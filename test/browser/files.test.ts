/** Plants that leave the console or enter it otherwise: copied, imported, exported. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { inspect } from "./browser.ts";
import { somePlants, useConsole, waitForTitle } from "./signed-in.ts";

const testGarden = useConsole();

async function chooseFile(page: Page, lines: readonly string[], note: RegExp): Promise<void> {
  const buffer = Buffer.from(lines.join("\r\n"));
  await page.setInputFiles("#import-file", { name: "plants.csv", mimeType: "text/plain", buffer });
  await page.locator("#transfer-note", { hasText: note }).waitFor();
}

const longName = "  A very long name, which the list cuts off\tand\nbreaks  ".padEnd(150, "y");

testGarden(
  "id, name and tag of a plant can be copied by keys",
  { plants: [{ id: 7, name: longName, tag: "  hall " }], permissions: ["clipboard-read"] },
  async ({ page }) => {
    await page.focus(".opener");
    await page.keyboard.press("Enter");
    for (const [field, text] of Object.entries({ id: "7", tag: "  hall ", name: longName })) {
      await page.focus(`#copy-${field}`);
      await page.keyboard.press("Enter");
      expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(text);
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
    await page.waitForSelector("#first-file");
    const rows = ["id;name;tag", ";Aloe;hall", "x; ;", "1;Fern;hall", "7;=1+1;a tag, with commas"];
    await chooseFile(page, rows, /^Nothing was sent: 1 of 4 rows is invalid\. Fix it and import/);
    expect(await page.textContent("#transfer-problems li")).toMatch(/^Line 3 the id must be an/);
    await inspect(page, "import-invalid");
    await chooseFile(page, rows.toSpliced(2, 1), /^3 rows, all valid\. Nothing was sent yet\.$/);
    expect(await page.locator("#transfer-samples tr").allInnerTexts()).toEqual([
      "next free\tAloe\thall",
      "1\tFern\thall",
      "7\t=1+1\ta tag, with commas",
    ]);
    await inspect(page, "import-preview");
    expect(await stored()).toEqual([]);
    await page.keyboard.press("Enter");
    await waitForTitle(page, "3 plants");
    await page.click("#transfer-actions button:text-is('Close')");
    await page.waitForSelector("#garden-title:focus");
  },
);

testGarden(
  "an export downloads the plants that are shown",
  { plants: somePlants },
  async ({ page }) => {
    await page.click(".chip:has-text('terrace')");
    await waitForTitle(page, "2 plants");
    const downloading = page.waitForEvent("download");
    await page.click("#export");
    const download = await downloading;
    expect(download.suggestedFilename()).toBe("plants-terrace.csv");
    const chunks = await Array.fromAsync(await download.createReadStream());
    expect(Buffer.concat(chunks).toString().split("\r\n")).toEqual([
      "\uFEFFid,name,tag",
      "9,Lavandula angustifolia,terrace",
      "10,Olea europaea,terrace",
      "",
    ]);
  },
);
