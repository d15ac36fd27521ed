/** The console on small screens: it fits, its targets are large enough, nothing covers anything. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { inspect, takePicture } from "./browser.ts";
import { deletePlants, openCard, somePlants, useConsole } from "./signed-in.ts";

const testGarden = useConsole();
const touch = { deviceScaleFactor: 2, hasTouch: true, isMobile: true };
const height = 700;

/** More than the activity panel shows at first. */
const plants = [
  ...somePlants,
  ...Array.from({ length: 200 }, (_, at) => ({ name: `Fig ${at}`, tag: `bed ${at % 20}` })),
];

/** Everything that can be tapped, and is smaller than a fingertip. */
function findSmallTargets(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const targets = document.querySelectorAll<HTMLElement>(
      "nav a, button, input, label.check, .rows .row",
    );
    return [...targets].flatMap((target) => {
      const { width, height } = target.getBoundingClientRect();
      // A row is the target of what is in it, and a label that of its checkbox.
      const isPart = target.closest(".rows .row, label.check") !== target;
      const isInside = isPart && target.closest(".rows .row, label.check") !== null;
      const isHidden = width === 0 || target.className === "skip";
      if (isHidden || isInside || (width >= 44 && height >= 44)) return [];
      return [`${target.outerHTML.slice(0, 80)} ${width} × ${height}`];
    });
  });
}

testGarden(
  "the console fits screens of 390 and 320 pixels, with targets of 44",
  { plants, viewport: { width: 390, height }, ...touch },
  async ({ page }) => {
    const onEachScreen = async (name: string, look: (width: number) => Promise<void>) => {
      for (const width of [320, 390]) {
        await page.setViewportSize({ width, height });
        await look(width);
        await takePicture(page, `${width}-${name}`);
      }
    };
    const check = (name: string) =>
      onEachScreen(name, async (width) => {
        expect(await findSmallTargets(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
      });
    await page.waitForSelector(".chip");
    await check("list");
    // The other parts have the colors of large screens, where they are inspected.
    await inspect(page, "390-list");
    await page.click("#open-add");
    await check("adding");
    await page.click("#close-add");
    await openCard(page, "Aloë");
    await check("plant");
    await page.click("#plant-edit");
    await page.waitForSelector("#edit-name:focus");
    await check("editing");
    await page.click("#edit-cancel");
    await page.click("#select");
    await page.click(".row:has-text('Ficus')");
    await check("selecting");
    await page.click("#select-all");
    await page.click("#delete-selected");
    await page.waitForSelector("#confirm[open]");
    await check("delete-garden");
    await page.keyboard.press("Escape");
    await page.click("#select-done");

    const rows = Array.from({ length: 60 }, (_, index) => `x${index},${"Fig ".repeat(20)},`);
    const text = ["id,name,tag", ...rows, ",Fig,"].join("\n");
    const file = { name: `${"spring ".repeat(9)}.csv`, mimeType: "text/csv" };
    await page.setInputFiles("#import-file", { ...file, buffer: Buffer.from(text) });
    await page.waitForSelector("#transfer-note:has-text('60 of 61 rows are invalid.')");
    const last = await page.textContent("#transfer-problems li:last-child");
    expect(last).toMatch(/^Line 61 the id must be an integer/);
    await check("import-invalid");
    await page.click("#transfer-actions button:text-is('Close')");

    await deletePlants(page, "Aloë vera");
    await onEachScreen("end", async () => {
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      const noticeTop = (await page.locator("#undo").boundingBox())?.y ?? 0;
      for (const selector of ["#rows .row", ".footer"]) {
        const box = await page.locator(selector).last().boundingBox();
        const bottom = Math.floor((box?.y ?? Number.NaN) + (box?.height ?? 0));
        expect(bottom).toBeLessThanOrEqual(noticeTop);
      }
    });

    await page.click("#open-activity");
    await page.click("#earlier");
    await page.waitForSelector("#earlier", { state: "detached" });
    await check("activity");
  },
);
