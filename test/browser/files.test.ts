/** Plants that leave the console or enter it otherwise: copied, imported, exported. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { type RunningService, startService } from "../end-to-end/running-service.ts";
import { inspect, isBrowserMissing, watchPages } from "./browser.ts";
import { harvest, makeGarden, openGarden, shownNames, signIn, somePlants } from "./signed-in.ts";

watchPages();
let service: RunningService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.[Symbol.asyncDispose]());

async function chooseFile(page: Page, name: string, text: string): Promise<void> {
  const buffer = Buffer.from(text);
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

test.skipIf(isBrowserMissing)("id, name and tag of a plant can be copied by keys", async () => {
  const name = "  A very long name, which the list cuts off\tand\nbreaks  ".padEnd(150, "y");
  const token = await makeGarden(service, [{ id: 7, name, tag: "  hall " }]);
  await using opened = await openGarden(service, token, { permissions: ["clipboard-read"] });
  const { page } = opened;
  await page.focus(".opener");
  await page.keyboard.press("Enter");
  await page.focus("#copy-name");
  await page.keyboard.press("Enter");
  expect(await page.textContent("#plant-note")).toBe("The name was copied.");
  await inspect(page, "plant");
  for (const [field, text] of [
    ["id", "7"],
    ["name", name],
    ["tag", "  hall "],
  ] as const) {
    await page.focus(`#copy-${field}`);
    await page.keyboard.press("Enter");
    const pasted = await page.evaluate(() => navigator.clipboard.readText());
    expect(pasted).toBe(text);
  }
  await page.keyboard.press("Escape");
  expect(await page.evaluate(() => document.activeElement?.className)).toBe("opener");
});

describe.skipIf(isBrowserMissing)("an import", () => {
  test("shows what it would do, and sends nothing before it is told to", async () => {
    const token = await makeGarden(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
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
    expect(await harvest(service, token)).toEqual([]);
    await importFile(page, "plants.csv", rows.join("\r\n"));
    await waitForNote(page, /^Added 3 plants in \d\.\d s\.$/);
    await page.waitForSelector("#garden-title:text-is('3 plants')");
    // The id of a later row is not assigned to an earlier one.
    expect(await shownNames(page)).toEqual(["Fern", "=1+1", "Aloe"]);
    expect(await page.textContent("#announcer")).toContain("3 plants");
    await inspect(page, "imported");
  });

  test("of a file with invalid rows adds the others only if asked, and doubles nothing", async () => {
    const token = await makeGarden(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    const rows = Array.from({ length: 1_200 }, (_, index) => `,Plant ${index},bed`);
    rows[9] = '," ",';
    rows[700] = "x,Fig,";
    const write = () => ["id,name,tag", ...rows].join("\n");
    await chooseFile(page, "plants.csv", write());
    await waitForNote(page, /^Nothing was sent: 2 of 1,200 rows are invalid\. Fix them/);
    expect(await page.locator("#transfer-problems li").allTextContents()).toEqual([
      "Line 11 name must not be only white space",
      "Line 702 the id must be an integer such as 7 or -7: only digits, no leading zeros",
    ]);
    await inspect(page, "import-invalid");
    expect(await harvest(service, token)).toEqual([]);
    await page.click("#transfer-actions button:text-is('Add the other 1,198 plants')");
    await waitForNote(page, /^Added 1,198 plants in .+ s\. 2 rows were refused\.$/);
    rows[9] = ",Fern,";
    rows[700] = "5000,Fig,";
    await importFile(page, "plants.csv", write());
    await waitForNote(page, /^Added 2 plants in .+ s\. 1,198 were already there\.$/);
    await importFile(page, "plants.csv", write());
    await waitForNote(page, /^Added 0 plants in .+ s\. 1,200 were already there\.$/);
    expect(await harvest(service, token)).toHaveLength(1_200);
  });

  test("of a file with many invalid rows fits a phone", async () => {
    const token = await makeGarden(service, somePlants);
    await using opened = await openGarden(service, token, {
      viewport: { width: 390, height: 844 },
      hasTouch: true,
      isMobile: true,
      deviceScaleFactor: 2,
    });
    const { page } = opened;
    const rows = Array.from({ length: 60 }, (_, index) => `x${index},${"Fig ".repeat(20)},`);
    await chooseFile(
      page,
      `${"spring ".repeat(9)}.csv`,
      ["id,name,tag", ...rows, ",Fig,"].join("\n"),
    );
    await waitForNote(page, /^Nothing was sent: 60 of 61 rows are invalid\./);
    expect(await page.textContent("#transfer-problems li:last-child")).toBe("… and 10 more rows");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    await inspect(page, "phone-import-invalid");
  });

  test("reports the rows that the service refuses", async () => {
    const token = await makeGarden(service, [{ id: 1, name: "Acer" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await importFile(page, "plants.json", '[{"id":1,"name":"Fern"},\n{"name":"Moss"}]');
    await waitForNote(page, /^Added 1 plant in .+ s\. 1 row was refused\.$/);
    expect(await page.locator("#transfer-problems li").allTextContents()).toEqual([
      "Line 1, column 2 another plant has the id 1",
    ]);
  });

  test.each([
    [
      "never closes a quote",
      'name,tag\nFern,\n"Moss,\nIvy,\n',
      /can't be read past line 3\. Fix it/,
    ],
    ["has no header", "color\ngreen", /must start with a line that names its columns/],
    ["is JSON under another name", '{"name":"Fern"}', /Is it JSON\?/],
    ["is empty but for its header", "name,tag\n", /The file has no plants\./],
    ["is UTF-16", "\uFFFEname", /UTF-16/],
  ])("of a file that %s adds nothing", async (_what, text, note) => {
    const token = await makeGarden(service, somePlants.slice(0, 1));
    await using opened = await openGarden(service, token);
    const { page } = opened;
    const buffer = /UTF-16/.test(note.source) ? Buffer.from(text, "utf16le") : Buffer.from(text);
    await page.setInputFiles("#import-file", { name: "a.csv", mimeType: "text/csv", buffer });
    await waitForNote(page, note);
    expect(await page.locator("#transfer-actions button").allTextContents()).not.toContainEqual(
      expect.stringMatching(/^Add/),
    );
    expect(await harvest(service, token)).toHaveLength(1);
  });

  test("can be undone, and then be done again with other rows", async () => {
    const token = await makeGarden(service, [{ id: 1, name: "Acer" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await importFile(page, "plants.csv", "id,name\n1,Acer\n,Fern\n,Mos\n9,Ivy\n");
    await waitForNote(page, /^Added 3 plants in .+ s\. 1 was already there\.$/);
    await page.click("#transfer-actions button:text-is('Undo: delete these 3 plants')");
    await waitForNote(page, /^The import was undone: 3 plants deleted\.$/);
    await page.waitForSelector("#garden-title:text-is('1 plant')");
    expect(await harvest(service, token)).toEqual(["Acer"]);
    await inspect(page, "import-undone");
    await importFile(page, "plants.csv", "id,name\n1,Acer\n,Fern\n,Moss\n9,Ivy\n");
    await waitForNote(page, /^Added 3 plants in .+ s\. 1 was already there\.$/);
    // A page that doesn't know of the undo doubles nothing either.
    await page.reload();
    await signIn(page, token);
    await importFile(page, "plants.csv", "id,name\n1,Acer\n,Fern\n");
    await waitForNote(page, /^Added 0 plants in .+ s\. 2 were already there\.$/);
    expect((await harvest(service, token)).toSorted()).toEqual(["Acer", "Fern", "Ivy", "Moss"]);
  });

  test("that stopped continues, and adds nothing twice", async () => {
    const token = await makeGarden(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    const lines = Array.from({ length: 1_100 }, (_, index) => `{"name":"Plant ${index}"}`);
    let requests = 0;
    await page.route("**/plants/bulk", async (route) => {
      if (++requests === 1) return route.continue();
      // The service gets the second batch; the page never sees the response.
      await route.fetch();
      await route.abort();
    });
    await importFile(page, "plants.jsonl", lines.join("\n"));
    await waitForNote(page, /^The service did not respond\. Added 512 plants .+ 512 more may have/);
    await page.unroute("**/plants/bulk");
    await page.waitForSelector("#garden-title:text-is('1,024 plants')");
    await importFile(page, "plants.jsonl", lines.join("\n"));
    await waitForNote(page, /^Added 76 plants in .+ s\. 1,024 were already there\.$/);
    expect(await harvest(service, token)).toHaveLength(1_100);
  });

  test("sends the deletions that could still be undone first", async () => {
    const token = await makeGarden(service, [
      { id: 1, name: "Acer" },
      { id: 2, name: "Betula" },
    ]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.click("[aria-label='Delete Acer']");
    await importFile(page, "plants.csv", "id,name\n1,Carex\n");
    await waitForNote(page, /^Added 1 plant in/);
    expect(await harvest(service, token)).toEqual(["Carex", "Betula"]);
  });
});

test.skipIf(isBrowserMissing)("20,000 rows are imported and exported unchanged", async () => {
  const token = await makeGarden(service);
  await using opened = await openGarden(service, token);
  const { page } = opened;
  const rows = Array.from(
    { length: 20_000 },
    (_, index) => `${index + 1},"Plant, ""${index}""",bed`,
  );
  const text = `\uFEFF${["id,name,tag", ...rows, ""].join("\r\n")}`;
  await importFile(page, "plants.csv", text);
  await waitForNote(page, /^Added 20,000 plants in/);
  await page.waitForSelector("#rows .row");
  const exported = await exportPlants(page);
  expect([exported.name, exported.text === text]).toEqual(["plants.csv", true]);
  await waitForNote(page, /^Exported 20,000 plants\.$/);
});

describe.skipIf(isBrowserMissing)("an export", () => {
  test("has only the plants of the chosen tag, or those without one, each with its own name", async () => {
    const token = await makeGarden(service, somePlants);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.click(".chip:has-text('terrace')");
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
  });

  test("warns of names that a spreadsheet would take for formulas", async () => {
    const token = await makeGarden(service, [{ name: '=HYPERLINK("x")' }, { name: "Fern" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    expect((await exportPlants(page)).text).toContain('\r\n1,"=HYPERLINK(""x"")",\r\n');
    await waitForNote(page, /^Exported 2 plants\. 1 plant has a name or tag that starts with =/);
    await inspect(page, "exported");
  });
});
