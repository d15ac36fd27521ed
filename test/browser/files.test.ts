/** Plants that leave the console or enter it otherwise: imported, exported. */
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

testGarden(
  "an import shows what it would do, names invalid rows, and sends nothing before it is told to",
  {},
  async ({ page, stored }) => {
    await page.waitForSelector("#first-file");
    const rows = ["id;name;tag", ";Aloe;hall", "x; ;", "1;Fern;hall", "7;=1+1;a tag, with commas"];
    await chooseFile(page, rows, /^Nothing was sent: 1 of 4 rows is invalid\. Fix it and import/);
    expect(await page.textContent("#transfer-problems li")).toMatch(/^Line 3 the id must be an/);
    await inspect(page, "import-invalid");
    const valid =
      /^3 rows, all valid\. The file starts with “Aloe”, tagged “hall”\. Nothing was sent/;
    await chooseFile(page, rows.toSpliced(2, 1), valid);
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
