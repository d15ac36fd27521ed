/** Plants that leave the console or enter it otherwise: copied, imported, exported. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { type RunningService, startService } from "../end-to-end/running-service.ts";
import { inspect, isBrowserMissing, watchPages } from "./browser.ts";
import { harvest, makeGarden, openGarden, shownNames, somePlants } from "./signed-in.ts";

watchPages();
let service: RunningService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.[Symbol.asyncDispose]());

/** The same file each time: the page knows it by its name, size and date. */
async function importFile(page: Page, name: string, text: string): Promise<void> {
  const buffer = Buffer.from(text);
  await page.setInputFiles("#import-file", { name, mimeType: "text/plain", buffer });
}

async function exportPlants(page: Page): Promise<string> {
  const downloading = page.waitForEvent("download");
  await page.click("#export");
  const chunks = await Array.fromAsync(await (await downloading).createReadStream());
  return Buffer.concat(chunks).toString();
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

test.skipIf(isBrowserMissing)("a file is imported, with a report of refused lines", async () => {
  const token = await makeGarden(service);
  await using opened = await openGarden(service, token);
  const { page } = opened;
  await page.waitForSelector("#first-file:visible");
  const lines = ["id,name,tag", ",Aloe,hall", "1,Fern,hall", '2," "," "', "x,Fig,", "1,Rose,porch"];
  await importFile(page, "plants.csv", lines.join("\n"));
  await page.waitForSelector("#transfer-note:text-is('2 plants added. 3 rows refused:')");
  expect(await page.locator("#transfer-refused li").allTextContents()).toEqual([
    expect.stringMatching(/^Line 4: name must/),
    "Line 5: the id must be an integer such as 7 or -7: only digits, no leading zeros",
    expect.stringMatching(/^Line 6: .*\b1\b/),
  ]);
  await page.waitForSelector("#garden-title:text-is('2 plants')");
  // The id of a later row is not assigned to an earlier one.
  expect(await shownNames(page)).toEqual(["Fern", "Aloe"]);
  expect(await page.textContent("#announcer")).toContain("2 plants added.");
  await inspect(page, "imported");
  await page.click("#transfer-button");
  expect(await page.isVisible("#transfer")).toBe(false);
  await importFile(page, "plants.csv", "color\ngreen");
  await page.waitForSelector("#transfer-note:has-text('must start with a line that names')");
});

test.skipIf(isBrowserMissing)(
  "an import that stopped continues, and adds nothing twice",
  async () => {
    const token = await makeGarden(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    const lines = Array.from({ length: 2_500 }, (_, index) => `{"name":"Plant ${index}"}`);
    let requests = 0;
    await page.route("**/plants", async (route) => {
      if (++requests === 1) return route.continue();
      // The service gets the second batch; the page never sees the response.
      await route.fetch();
      await route.abort();
    });
    await page.evaluate(() => {
      // A file made by a test has the time of its making.
      Object.defineProperty(File.prototype, "lastModified", { value: 0 });
    });
    await importFile(page, "plants.jsonl", lines.join("\n"));
    await page.waitForSelector("#transfer-note:has-text('Import the same file again')");
    await page.unroute("**/plants");
    await page.waitForSelector("#garden-title:text-is('First 500 plants')");
    await importFile(page, "plants.jsonl", lines.join("\n"));
    await page.waitForSelector("#transfer-note:text-is('2,500 plants added.')");
    expect(await harvest(service, token)).toHaveLength(2_500);
  },
);

test.skipIf(isBrowserMissing)("20,000 rows are imported and exported unchanged", async () => {
  const token = await makeGarden(service);
  await using opened = await openGarden(service, token);
  const { page } = opened;
  const rows = Array.from(
    { length: 20_000 },
    (_, index) => `${index + 1},"Plant, ""${index}""",bed`,
  );
  const text = ["id,name,tag", ...rows, ""].join("\r\n");
  await importFile(page, "plants.csv", text);
  await page.waitForSelector("#transfer-note:text-is('20,000 plants added.')", {
    timeout: 80_000,
  });
  await page.waitForSelector("#rows .row");
  expect((await exportPlants(page)) === text).toBe(true);
  await page.waitForSelector("#transfer-note:text-is('20,000 plants exported.')");
});

test.skipIf(isBrowserMissing)("an export has only the plants of the chosen tag", async () => {
  const token = await makeGarden(service, somePlants);
  await using opened = await openGarden(service, token);
  const { page } = opened;
  await page.click(".chip:has-text('terrace')");
  expect(await exportPlants(page)).toBe(
    "id,name,tag\r\n9,Lavandula angustifolia,terrace\r\n10,Olea europaea,terrace\r\n",
  );
});
