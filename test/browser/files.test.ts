/** Plants that leave the console or enter it otherwise: copied, imported, exported. */
import { describe, expect } from "bun:test";
import type { Page } from "playwright-core";
import { inspect, takePicture } from "./browser.ts";
import { shownNames, signIn, somePlants, useConsole } from "./signed-in.ts";

const testGarden = useConsole();

async function chooseFile(page: Page, name: string, text: string | Buffer): Promise<void> {
  const buffer = Buffer.from(text as string);
  await page.setInputFiles("#import-file", { name, mimeType: "text/plain", buffer });
}

/** Chooses a file and presses the button that adds its plants, once it is there. */
async function importFile(page: Page, name: string, text: string): Promise<void> {
  await chooseFile(page, name, text);
  await page.click("#transfer-actions button:text-matches('^Add ')");
}

function waitForNote(page: Page, pattern: RegExp) {
  return page.locator("#transfer-note", { hasText: pattern }).waitFor({ timeout: 80_000 });
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

describe("an import", () => {
  testGarden(
    "shows what it would do, and sends nothing before it is told to",
    {},
    async ({ page, stored }) => {
      await page.waitForSelector("#first-file:visible");
      const rows = [
        "id;name;tag",
        ";Aloe;hall",
        ";;",
        "1;Fern;hall",
        "7;=1+1;a long tag, with commas",
      ];
      await chooseFile(page, "plants.csv", rows.join("\r\n"));
      await waitForNote(page, /^3 rows, all valid\. Nothing was sent yet\.$/);
      expect(await page.locator("#transfer-samples tr").allInnerTexts()).toEqual([
        "next free\tAloe\thall",
        "1\tFern\thall",
        "7\t=1+1\ta long tag, with commas",
      ]);
      await inspect(page, "import-preview");
      await page.click("#transfer-actions button:text-is('Cancel')");
      expect(await page.isVisible("#transfer")).toBe(false);
      expect(await stored()).toEqual([]);
      await importFile(page, "plants.csv", rows.join("\r\n"));
      await waitForNote(page, /^Added 3 plants in \d+\.\d s\.$/);
      await page.waitForSelector("#garden-title:text-is('3 plants')");
      // The id of a later row is not assigned to an earlier one.
      expect(await shownNames(page)).toEqual(["Fern", "=1+1", "Aloe"]);
      expect(await page.textContent("#announcer")).toContain("3 plants");
      await takePicture(page, "imported");
    },
  );

  testGarden(
    "of a file with invalid rows adds nothing until they are fixed, and doubles nothing",
    {},
    async ({ page, stored }) => {
      const rows = Array.from({ length: 600 }, (_, index) => `,Plant ${index},bed`);
      rows[9] = '," ",';
      rows[550] = "x,Fig,";
      const write = () => ["id,name,tag", ...rows].join("\n");
      await chooseFile(page, "plants.csv", write());
      await waitForNote(page, /^Nothing was sent: 2 of 600 rows are invalid\. Fix them and import/);
      expect(await page.locator("#transfer-problems li").allTextContents()).toEqual([
        "Line 11 name must not be only white space",
        "Line 552 the id must be an integer such as 7 or -7: only digits, no leading zeros",
      ]);
      expect(await page.locator("#transfer-actions button").allTextContents()).toEqual([
        "Choose the file again",
        "Cancel",
      ]);
      await inspect(page, "import-invalid");
      expect(await stored()).toEqual([]);
      rows[9] = ",Fern,";
      rows[550] = "5000,Fig,";
      await importFile(page, "plants.csv", write());
      await waitForNote(page, /^Added 600 plants in .+ s\.$/);
      await importFile(page, "copy.csv", write());
      await waitForNote(page, /^Added 0 plants in .+ s\. 600 were already there\.$/);
      // An export has every page of them.
      const names = await stored();
      expect(names).toHaveLength(600);
      const lines = (await exportPlants(page)).text.split("\r\n").slice(1, -1);
      expect(lines.map((line) => line.split(",")[1] ?? "")).toEqual(names);
      await waitForNote(page, /^Exported 600 plants\.$/);
    },
  );

  testGarden("of a file that can't be read adds nothing", {}, async ({ page, stored }) => {
    for (const [text, note] of [
      ['name,tag\nFern,\n"Moss,\nIvy,\n', /can't be read past line 3\. Fix it/],
      ['{"name":"Fern"}', /Is it JSON\?/],
      ["name,tag\n", /The file has no plants\./],
      [Buffer.from("\uFFFEname", "utf16le"), /UTF-16/],
    ] as const) {
      await chooseFile(page, "a.csv", text);
      await waitForNote(page, note);
      expect(await page.locator("#transfer-actions button").allTextContents()).not.toContainEqual(
        expect.stringMatching(/^Add/),
      );
    }
    expect(await stored()).toEqual([]);
  });

  testGarden(
    "can be undone at once, and then be done again",
    { plants: [{ id: 1, name: "Acer" }] },
    async ({ page, token, stored }) => {
      const text = "id,name\n1,Acer\n,Fern\n,Moss\n9,Ivy\n";
      await importFile(page, "plants.csv", text);
      await waitForNote(page, /^Added 3 plants in .+ s\. 1 was already there\.$/);
      await page.click("#transfer-actions button:text-is('Undo: delete these 3 plants')");
      await waitForNote(page, /^The import was undone: 3 plants deleted\.$/);
      await page.waitForSelector("#garden-title:text-is('1 plant')");
      expect(await stored()).toEqual(["Acer"]);
      await takePicture(page, "import-undone");
      await importFile(page, "plants.csv", text);
      await waitForNote(page, /^Added 3 plants in .+ s\. 1 was already there\.$/);
      // A page that doesn't know of the undo says so, and asks before it doubles anything.
      await page.reload();
      await signIn(page, token);
      await importFile(page, "plants.csv", text);
      await waitForNote(
        page,
        /2 were already there\. 2 were added by an earlier import and deleted/,
      );
      expect(await stored()).toEqual(["Acer", "Ivy", "Fern", "Moss"]);
      await page.click("#transfer-actions button:text-is('Import the whole file once more')");
      await waitForNote(page, /^Added 2 plants in .+ s\. 2 were already there\.$/);
    },
  );

  testGarden("that stopped continues, and adds nothing twice", {}, async ({ page, stored }) => {
    const lines = Array.from({ length: 5_000 }, (_, index) =>
      JSON.stringify({ name: `Plant ${index} `.padEnd(120, "x") }),
    );
    let requests = 0;
    await page.route("**/plants/bulk", async (route) => {
      if (++requests === 1) return route.continue();
      // The service gets the second bulk; the page never sees the response.
      await route.fetch();
      await route.abort();
    });
    await importFile(page, "plants.jsonl", lines.join("\n"));
    await waitForNote(page, /^The service did not respond\. Added 1,\d+ plants .+ added twice\.$/);
    await page.unroute("**/plants/bulk");
    await importFile(page, "plants.jsonl", lines.join("\n"));
    await waitForNote(page, /^Added 1,\d+ plants in .+ s\. 3,\d+ were already there\.$/);
    expect(new Set(await stored()).size).toBe(5_000);
    await page.waitForSelector("#garden-title:text-is('5,000 plants')");
  });

  testGarden(
    "reports rows that are refused",
    { plants: [{ id: 2, name: "Betula" }] },
    async ({ page, stored }) => {
      await importFile(page, "plants.json", '[{"id":1,"name":"Carex"},\n{"id":2,"name":"Fern"}]');
      await waitForNote(page, /^Added 1 plant in .+ s\. 1 row was refused\.$/);
      expect(await page.locator("#transfer-problems li").allTextContents()).toEqual([
        "Line 2, column 1 another plant has the id 2",
      ]);
      expect(await stored()).toEqual(["Carex", "Betula"]);
    },
  );
});

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
