/** Viewing a garden in the console, in a real browser: lists, filters, errors, keys. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { inspect } from "./browser.ts";
import { openCard, shownNames, signIn, somePlants, useConsole, waitForTitle } from "./signed-in.ts";

const testGarden = useConsole();

function makeMany(amount: number) {
  const names = ["Acer", "Betula", "Carex", "Digitalis", "Erica", "Fagus", "Geum", "Hosta"];
  return Array.from({ length: amount }, (_, index) => ({
    name: `${names[index % names.length]} ${index + 1}`,
    tag: `bed ${((index * 7) % 23) + 1}`,
  }));
}

async function search(page: Page, text: string, title: string): Promise<void> {
  await page.fill("#filter", text);
  await waitForTitle(page, title);
}

/** Letter by letter, without a pause. */
function typeAtOnce(page: Page, text: string): Promise<void> {
  return page.locator("#filter").evaluate((input: HTMLInputElement, whole) => {
    for (let length = 1; length <= whole.length; length++) {
      input.value = whole.slice(0, length);
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }, text);
}

function hashOf(page: Page): string {
  return new URL(page.url()).hash;
}

testGarden(
  "a list is searched by words, and by a tag's bar",
  { plants: somePlants },
  async ({ page }) => {
    await page.waitForSelector("#tags .chip");
    await inspect(page, "few");
    await search(page, "officinalis", "2 plants");
    await page.waitForSelector("#garden-note:has-text('with “officinalis”')");
    expect(await shownNames(page)).toEqual(["Rosmarinus officinalis", "Salvia officinalis"]);
    await page.fill("#filter", "cactus");
    await page.waitForSelector("#no-match:has-text('No name or tag has “cactus”.')");
    await page.click("#clear-filter");
    await waitForTitle(page, "12 plants");
    expect(await page.locator("#tags .chip").allTextContents()).toEqual([
      ...["herbs 4", "living room 2", "terrace 2"],
      ...["no tag 1", "bathroom 1", "kitchen 1", "shade 1"],
    ]);
    await page.click(".chip:has-text('terrace')");
    await waitForTitle(page, "2 plants");
    expect(await shownNames(page)).toEqual(["Lavandula angustifolia", "Olea europaea"]);
    await page.click(".chip[aria-pressed=true]:has-text('terrace')");
    await waitForTitle(page, "12 plants");
  },
);

testGarden(
  "a long list loads page by page, in either order; the service searches, and the last one wins",
  { plants: makeMany(1_700) },
  async ({ page }) => {
    const rowCount = (rows: number) => page.waitForSelector(`#table[aria-rowcount='${rows}']`);
    await waitForTitle(page, "1,700 plants");
    expect(await page.textContent("#garden-note")).toBe("23 tags");
    await rowCount(501);
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await rowCount(1_001);
    expect(await page.locator("#filter").boundingBox()).toMatchObject({ y: 12 });
    expect(await page.locator("#rows .row").count()).toBeLessThan(80);
    await page.click("#newest");
    await page.waitForSelector("#rows .row:has-text('Digitalis 1700')");
    expect((await shownNames(page)).slice(0, 2)).toEqual(["Digitalis 1700", "Carex 1699"]);
    expect(hashOf(page)).toBe("#order=desc");
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await rowCount(1_001);
    await search(page, "acer 9", "82 plants");
    expect((await shownNames(page)).slice(0, 2)).toEqual(["Acer 1697", "Acer 1689"]);
    await page.press("#filter", "Escape");
    await waitForTitle(page, "1,700 plants");

    const asked: string[] = [];
    const held = Promise.withResolvers<void>();
    await page.route("**/plants?*q=*", async (route) => {
      asked.push(new URL(route.request().url()).searchParams.get("q") ?? "");
      if (asked.length === 1) await held.promise;
      await route.continue().catch(() => {});
    });
    await typeAtOnce(page, "hosta");
    await page.waitForSelector("#busy");
    await waitForTitle(page, "1,700 plants");
    await typeAtOnce(page, "hosta 1696");
    await waitForTitle(page, "1 plant");
    held.resolve();
    expect(await shownNames(page)).toEqual(["Hosta 1696"]);
    expect(asked).toEqual(["hosta", "hosta 1696"]);
    expect(await page.isVisible("#busy")).toBe(false);
    // What a screen reader says, too.
    expect(await page.textContent("#announcer")).toBe("1 plant with “hosta 1696”");
  },
);

testGarden(
  "the address has what is shown: Back closes a card and a filter, and a changed tag is followed",
  { plants: somePlants },
  async ({ page }) => {
    await search(page, "o", "11 plants");
    await search(page, "officinalis", "2 plants");
    await openCard(page, "Salvia");
    expect(hashOf(page)).toBe("#q=officinalis&plant=7");
    await page.goBack();
    await page.waitForSelector("#plant", { state: "hidden" });
    await page.goBack();
    await waitForTitle(page, "12 plants");
    expect([hashOf(page), await page.inputValue("#filter")]).toEqual(["", ""]);
    await page.goForward();
    await waitForTitle(page, "2 plants");
    expect(await page.inputValue("#filter")).toBe("officinalis");
    // Whoever closes a card or a filter by hand doesn't meet it again on the way back.
    await openCard(page, "Salvia");
    await page.keyboard.press("Escape");
    await page.waitForURL(/q=officinalis$/);
    await page.press("#filter", "Escape");
    await page.waitForURL(/\/$/);
    await waitForTitle(page, "12 plants");
    const setHash = (hash: string) =>
      page.evaluate((text) => {
        location.hash = text;
      }, hash);
    await setHash("tag=terrace");
    await waitForTitle(page, "2 plants");
    await setHash("plant=99");
    await page.waitForSelector("#plant-note:text-is('There is no plant 99.')");
  },
);

testGarden(
  "trouble is shown, in the service's own words if it has some, with a way to retry",
  { plants: somePlants, isSignedIn: false },
  async ({ page, token }) => {
    await page.check("#keep-token");
    await signIn(page, token);
    const detail = "The storage is busy. Try again in a moment.";
    const body = JSON.stringify({ type: "urn:plantstore:problem:unavailable", detail });
    const problem = { status: 503, contentType: "application/problem+json", body };
    await page.route("**/plants?*", (route) => route.fulfill(problem));
    await page.reload();
    await page.waitForSelector(`#trouble-note:text-is('${detail}')`);
    await inspect(page, "trouble");
    await page.unroute("**/plants?*");
    await page.click("#retry");
    await page.waitForSelector("#rows .row");
    expect(await page.isVisible("#trouble")).toBe(false);
  },
);

testGarden(
  "the accessibility tree has names and roles for the list, its tags, a selection and a card",
  { plants: somePlants.slice(0, 2) },
  async ({ page }) => {
    const expectTree = async (selector: string, ...lines: string[]) =>
      expect(await page.locator(selector).ariaSnapshot()).toContain(lines.join("\n"));
    await page.waitForSelector(".chip");
    await expectTree("#tags", '- group "Show one tag only":', '  - button "living room 2"');
    await expectTree("#table", '- table "2 plants":', "  - rowgroup:", '    - row "Id Name Tag":');
    await expectTree("#rows", '- cell "Ficus lyrata":', '      - button "Ficus lyrata"');
    await page.click("#select");
    await page.click(".row:has-text('Ficus')");
    await expectTree("#rows", '- checkbox "Select Ficus lyrata" [checked]');
    await expectTree("#selection", "- status: 1 selected");
    await page.click("#select-done");
    await openCard(page, "Ficus");
    await expectTree("#plant", '- dialog "Ficus lyrata":', '  - heading "Ficus lyrata" [level=2]');
    await expectTree("#plant", '- button "Edit"');
    await inspect(page, "plant");
  },
);

testGarden("the console works by keys alone", { isSignedIn: false }, async ({ page, token }) => {
  const { keyboard } = page;
  const press = async (...keys: readonly string[]) => {
    for (const key of keys) await keyboard.press(key);
  };
  const focused = () => page.evaluate(() => document.activeElement?.textContent);
  await keyboard.type(token);
  await press("Enter");
  await page.waitForSelector("#empty");
  for (const name of ["Acer", "Betula", "Carex"]) {
    await press("n");
    await keyboard.type(name);
    await press("Tab");
    await keyboard.type(`${name} bed`);
    await press("Enter");
    await page.waitForSelector(`.row:has-text('${name}')`);
    await press("Escape");
  }
  await press("/");
  await keyboard.type("betula");
  await waitForTitle(page, "1 plant");
  await press("ArrowDown");
  expect(await focused()).toBe("Betula");
  await press("ArrowUp", "Escape");
  await waitForTitle(page, "3 plants");
  // From the title, where one is after signing in.
  await page.focus("#garden-title");
  await press("ArrowDown", "ArrowDown");
  expect(await focused()).toBe("Betula");
  await press("Delete");
  await page.waitForSelector("#undo");
  expect(await shownNames(page)).toEqual(["Acer", "Carex"]);
  expect(await focused()).toBe("Carex");
  await press("z");
  await waitForTitle(page, "3 plants");
  expect(await focused()).toBe("Betula");
  await page.uncheck("#use-shortcuts");
  await press("n");
  expect(await page.isVisible("#add")).toBe(false);
});
