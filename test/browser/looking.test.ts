/** What the console shows: lists, searches, tags, addresses, and all of it on small screens. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { expectAccessible, takePicture } from "./browser.ts";
import {
  chooseImportFile,
  deletePlants,
  download,
  openEditor,
  selectedNames,
  selectPlants,
  shownNames,
  signIn,
  twelvePlants,
  useConsole,
  waitForCount,
} from "./signed-in.ts";

/** Its tests also fail if the page logs errors, calls other hosts or violates its policy. */
const testPage = useConsole();

/** What is behind the `#`. */
function hashOf(page: Page): string {
  return new URL(page.url()).hash;
}

testPage(
  "screen readers get the tags, the columns and the plants",
  { plants: twelvePlants },
  async ({ page, user }) => {
    await page.waitForSelector("#tags .chip");

    const tags = await page.locator("#tags").ariaSnapshot();
    expect(tags).toStartWith('- group "Show one tag only":\n  - button "herbs 4"\n');
    const table = await page.locator("#table").ariaSnapshot();
    expect(table).toStartWith(`- table "${user} 12 plants, 6 tags":\n  - rowgroup:\n`);
    expect(table).toContain('- columnheader "Name":\n        - button "Name"\n');
    expect(table).toContain('- cell "Ficus lyrata":\n        - button "Ficus lyrata"\n');
  },
);

testPage(
  "names and tags are shown as text, never as HTML",
  { plants: [{ name: "<img src=x onerror=alert(1)>", tag: "<b>bold</b>" }] },
  async ({ page }) => {
    await page.waitForSelector(".chip");

    expect(await page.textContent("#rows .name")).toBe("<img src=x onerror=alert(1)>");
    expect(await page.textContent("#rows .tag")).toBe("<b>bold</b>");
    expect(await page.textContent(".chip")).toBe("<b>bold</b> 1");
    expect(await page.locator("#garden img, #garden b").count()).toBe(0);
  },
);

testPage(
  "a right-to-left name or tag is isolated, so that it reorders nothing around it",
  { plants: [{ name: "שושנה (2", tag: "גן" }, { name: "Fern" }] },
  async ({ page }) => {
    await page.waitForSelector(".chip");
    expect(await shownNames(page)).toEqual(["Fern", "שושנה (2"]);
    expect(await page.locator("#rows .name bdi").allTextContents()).toEqual(["Fern", "שושנה (2"]);
    expect(await page.locator("#rows .tag bdi").allTextContents()).toEqual(["גן"]);
    expect(await page.locator(".chip bdi").allTextContents()).toContain("גן");

    await deletePlants(page, "שושנה (2");
    expect(await page.textContent("#undo-text bdi")).toBe("שושנה (2");

    await page.click("#undo-button");
    await page.waitForSelector("#notice:has-text('“שושנה (2” is back.')");
  },
);

testPage(
  "a search shows the plants that match, and says how many to screen readers, too",
  { plants: twelvePlants },
  async ({ page }) => {
    await page.fill("#filter", "officinalis");

    await waitForCount(page, "2 plants");
    await page.waitForSelector("#garden-note:has-text('with “officinalis”')");
    expect(await shownNames(page)).toEqual(["Rosmarinus officinalis", "Salvia officinalis"]);
    expect(await page.textContent("#announcer")).toBe("2 plants with “officinalis”");
  },
);

testPage(
  "a search that finds nothing says so, and can be cleared",
  { plants: twelvePlants },
  async ({ page }) => {
    await page.fill("#filter", "cactus");
    await page.waitForSelector("#no-match:has-text('No name or tag has “cactus”.')");

    await page.click("#clear-filter");
    await waitForCount(page, "12 plants");
  },
);

testPage(
  "a click on a tag shows its plants, and another one all plants again",
  { plants: twelvePlants },
  async ({ page }) => {
    await page.waitForSelector(".chip");
    expect(await page.locator("#tags .chip").allTextContents()).toEqual([
      "herbs 4",
      "living room 2",
      "terrace 2",
      "no tag 1",
      "bathroom 1",
      "kitchen 1",
      "shade 1",
    ]);

    await page.click(".chip:has-text('terrace')");
    await waitForCount(page, "2 plants");
    expect(await shownNames(page)).toEqual(["Lavandula angustifolia", "Olea europaea"]);

    await page.click(".chip[aria-pressed=true]:has-text('terrace')");
    await waitForCount(page, "12 plants");
  },
);

testPage("an export has the plants that are shown", { plants: twelvePlants }, async ({ page }) => {
  await page.click(".chip:has-text('terrace')");
  await waitForCount(page, "2 plants");

  const file = await download(page, "#export");

  expect(file).toEqual({
    name: "plants-terrace.csv",
    text: "\uFEFFid,name,tag\r\n9,Lavandula angustifolia,terrace\r\n10,Olea europaea,terrace\r\n",
  });
});

/** With 23 tags, `0` to `22`. */
const figs1700 = Array.from({ length: 1_700 }, (_, index) => ({
  name: `Fig ${index}`,
  tag: `${index % 23}`,
}));

/** Waits until the table has this many rows, including its head, of which few are drawn. */
async function waitForRows(page: Page, rows: number): Promise<void> {
  await page.waitForSelector(`#table[aria-rowcount='${rows}']`);
}

async function scrollToEnd(page: Page): Promise<void> {
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
}

testPage(
  "a long list loads page by page while it's scrolled, below a search that stays in view",
  { plants: figs1700 },
  async ({ page }) => {
    await waitForCount(page, "1,700 plants");
    expect(await page.textContent("#garden-note")).toBe("1,700 plants, 23 tags");
    await waitForRows(page, 501);

    await scrollToEnd(page);

    await waitForRows(page, 1_001);
    expect(await page.locator("#filter").boundingBox()).toMatchObject({ y: 8 });
    expect(await page.locator("#rows .row").count()).toBeLessThan(80);
  },
);

testPage(
  "a click on a column's head sorts all of a long list, loaded or not",
  { plants: figs1700 },
  async ({ page }) => {
    // It starts in the order of the ids, so this reverses it.
    await page.click("#sort-id");
    await page.waitForSelector("[aria-sort=descending] #sort-id");
    expect((await shownNames(page)).slice(0, 2)).toEqual(["Fig 1699", "Fig 1698"]);
    await scrollToEnd(page);
    await waitForRows(page, 1_001);

    await page.click("#sort-tag");
    await page.waitForSelector("[aria-sort=ascending] #sort-tag");
    await waitForRows(page, 1_701);
    expect((await shownNames(page)).slice(0, 3)).toEqual(["Fig 0", "Fig 23", "Fig 46"]);
    expect(hashOf(page)).toBe("#sort=tag");
  },
);

testPage(
  "Back and Forward go through what was shown: an open plant and a search",
  { plants: twelvePlants },
  async ({ page }) => {
    // What is typed on the way to a search has no entry of its own.
    await page.fill("#filter", "o");
    await waitForCount(page, "11 plants");
    await page.fill("#filter", "officinalis");
    await waitForCount(page, "2 plants");
    await openEditor(page, "Salvia");
    expect(hashOf(page)).toBe("#q=officinalis&plant=7");

    await page.goBack();
    await page.waitForSelector("#edit", { state: "detached" });
    await page.goBack();
    await waitForCount(page, "12 plants");
    expect(hashOf(page)).toBe("");
    expect(await page.inputValue("#filter")).toBe("");

    await page.goForward();
    await waitForCount(page, "2 plants");
    expect(await page.inputValue("#filter")).toBe("officinalis");
  },
);

testPage(
  "closing a plant or a search takes it out of the address",
  { plants: twelvePlants },
  async ({ page }) => {
    await page.fill("#filter", "officinalis");
    await waitForCount(page, "2 plants");
    await openEditor(page, "Salvia");

    await page.keyboard.press("Escape");
    await page.waitForURL(/#q=officinalis$/);
    await page.press("#filter", "Escape");
    await page.waitForURL(/\/$/);
  },
);

testPage(
  "the page follows an address that is changed by hand",
  { plants: twelvePlants },
  async ({ page }) => {
    await page.goto(`${page.url()}#tag=terrace`);

    await waitForCount(page, "2 plants");
  },
);

testPage(
  "a row that is opened right after another was closed stays open",
  { plants: twelvePlants },
  async ({ page }) => {
    await openEditor(page, "Salvia");

    // Faster than the browser goes back.
    await page.evaluate(() => {
      const pressed = new KeyboardEvent("keydown", { key: "Escape", bubbles: true });
      document.querySelector("#edit-name")?.dispatchEvent(pressed);
      document.querySelector<HTMLElement>("#rows .row:has(.opener) .opener")?.click();
    });

    await page.waitForURL(/plant=8$/);
    await page.waitForSelector("#edit-name:focus");
  },
);

testPage(
  "a link to a plant opens it in the list, or above a list that doesn't have it",
  { plants: twelvePlants, isSignedIn: false },
  async ({ page, service, token }) => {
    await page.check("#keep-token");
    await signIn(page, token);

    await page.goto(`${service.url}/?plant=7`);
    await page.reload();
    await page.waitForSelector("#rows #edit-name:focus");
    expect(await page.inputValue("#edit-name")).toBe("Salvia officinalis");

    await page.goto(`${service.url}/#tag=terrace&plant=7`);
    await page.reload();
    await page.waitForSelector(".first-row #edit-name:focus");
    expect(await page.inputValue("#edit-name")).toBe("Salvia officinalis");
    await expectAccessible(page, "plant-above");
  },
);

testPage("a link to a plant that doesn't exist says so", {}, async ({ page, service }) => {
  await page.goto(`${service.url}/#plant=99`);

  await page.waitForSelector("#notice:has-text('There is no plant 99.')");
});

testPage(
  "a list that can't be loaded shows the service's reason, and loads after “Try again”",
  { plants: twelvePlants, isSignedIn: false },
  async ({ page, token }) => {
    const unavailable = {
      status: 503,
      contentType: "application/problem+json",
      body: JSON.stringify({
        type: "urn:plantstore:problem:unavailable",
        detail: "The storage is busy. Try again in a moment.",
      }),
    };
    await page.route("**/plants?*", (route) => route.fulfill(unavailable));
    await signIn(page, token);
    await page.waitForSelector(
      "#trouble-note:text-is('The storage is busy. Try again in a moment.')",
    );
    await expectAccessible(page, "trouble");

    await page.unroute("**/plants?*");
    await page.click("#retry");

    await page.waitForSelector("#rows .row");
    expect(await page.isVisible("#trouble")).toBe(false);
  },
);

/** Absent from the types of TypeScript. */
interface LayoutShift extends PerformanceEntry {
  readonly value: number;
}

/** How much has moved since the page was loaded. Browsers call less than 0.1 good. */
function measureLayoutShift(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        let sum = 0;
        const observer = new PerformanceObserver((list) => {
          for (const entry of list.getEntries()) sum += (entry as LayoutShift).value;
        });
        observer.observe({ type: "layout-shift", buffered: true });
        requestAnimationFrame(() => requestAnimationFrame(() => resolve(sum)));
      }),
  );
}

testPage(
  "nothing moves while the page loads again, on a large screen and on a small one",
  {
    plants: Array.from({ length: 600 }, (_, index) => ({
      name: `Fig ${index}`,
      tag: `${index % 7}`,
    })),
    isSignedIn: false,
  },
  async ({ page, token }) => {
    await page.check("#keep-token");
    await signIn(page, token);

    await page.reload();
    await page.waitForSelector(".chip");
    expect(await measureLayoutShift(page)).toBeLessThan(0.1);

    await page.setViewportSize({ width: 390, height: 700 });
    await page.reload();
    await page.waitForSelector(".chip");
    expect(await measureLayoutShift(page)).toBeLessThan(0.1);

    await page.setViewportSize({ width: 1280, height: 860 });
  },
);

const phone = {
  viewport: { width: 390, height: 700 },
  deviceScaleFactor: 2,
  hasTouch: true,
  isMobile: true,
};

/** What can be tapped and is smaller than a fingertip: 44 pixels. */
function findSmallTargets(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    // A row is the target of what is in it, and a label that of its checkbox.
    const whole = ".rows .row:not(.edited), label.check, .head .box";
    const targets = [...document.querySelectorAll(`nav a, button, input, ${whole}`)];
    return targets
      .filter((target) => [target, null].includes(target.closest(whole)))
      .filter((target) => target.className !== "skip" && target.checkVisibility())
      .map((target) => ({ target, box: target.getBoundingClientRect() }))
      .filter(({ box }) => box.width > 0 && (box.width < 44 || box.height < 44))
      .map(({ target, box }) => `${target.outerHTML.slice(0, 80)} ${box.width} × ${box.height}`);
  });
}

/** Fails if the page scrolls sideways or has small targets, at a width of 320 or 390 pixels. */
async function expectFit(page: Page, pictureName: string): Promise<void> {
  for (const width of [320, 390]) {
    await page.setViewportSize({ width, height: 700 });
    expect(await findSmallTargets(page)).toEqual([]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    await takePicture(page, `${width}-${pictureName}`);
  }
}

testPage(
  "the list, its forms and its menus fit the screens of phones",
  { plants: twelvePlants, ...phone },
  async ({ page }) => {
    await page.waitForSelector(".chip");
    const firstRow = await page.locator("#rows .row").first().boundingBox();
    expect(firstRow?.y).toBeLessThan(261);
    await expectFit(page, "list");
    // The other parts have the colors of large screens, where they are checked.
    await expectAccessible(page, "390-list");

    await page.click("#open-add");
    await expectFit(page, "adding");
    await page.click("#close-add");

    await openEditor(page, "Aloë");
    await expectFit(page, "editing");
    await expectAccessible(page, "390-editing");
    await page.click("#edit-close");

    await selectPlants(page, "Ficus");
    expect(await selectedNames(page)).toEqual(["Ficus lyrata"]);
    await expectFit(page, "selecting");
    await page.click("#select-done");

    await page.click("#open-more");
    await expectFit(page, "more");
    await page.click("#open-activity");
    await page.waitForSelector("#activity-list li");
    await expectFit(page, "activity");
    await page.click("#close-activity");

    await page.click("#open-me");
    await expectFit(page, "me");
  },
);

testPage(
  "an import fits the screens of phones",
  { plants: twelvePlants, ...phone },
  async ({ page }) => {
    await page.click("#open-more");
    await page.click("#open-import");
    await expectFit(page, "import");

    const invalidRows = Array.from({ length: 60 }, (_, index) => `x${index},${"Fig ".repeat(20)},`);
    await chooseImportFile(page, "id,name,tag", ...invalidRows, ",Fig,");
    await page.waitForSelector("#import-note:has-text('60 of 61 rows are invalid.')");
    await expectFit(page, "import-invalid");
    await expectAccessible(page, "390-import-invalid");

    await chooseImportFile(page, "id,name,tag", "1,Monstera,living room", ",Fig,", ",Ivy,");
    await page.check("#import-changes");
    await expectFit(page, "import-preview");
    await page.click("#import-next:text-is('Add 2 and change 1 plant')");
    await waitForCount(page, "14 plants");
    await page.click("#import-next:text-is('Close')");
  },
);

testPage(
  "on a phone, a notice covers neither the last plant nor the page's foot",
  { plants: twelvePlants, ...phone },
  async ({ page }) => {
    await deletePlants(page, "Aloë vera");
    await scrollToEnd(page);

    const notice = await page.locator("#undo").boundingBox();
    const lastRow = await page.locator("#rows .row").last().boundingBox();
    const foot = await page.locator(".footer").boundingBox();
    if (!notice || !lastRow || !foot) throw new Error("One of them isn't shown.");
    expect(Math.floor(lastRow.y + lastRow.height)).toBeWithin(1, notice.y + 1);
    expect(Math.floor(foot.y + foot.height)).toBeWithin(1, notice.y + 1);
  },
);
