/** Viewing a garden in the console, in a real browser: lists, filters, errors, keys. */
import { describe, expect } from "bun:test";
import { inspect } from "./browser.ts";
import { deletePlants, shownNames, signIn, somePlants, useConsole } from "./signed-in.ts";

const testGarden = useConsole();

function makeMany(amount: number) {
  const names = ["Acer", "Betula", "Carex", "Digitalis", "Erica", "Fagus", "Geum", "Hosta"];
  return Array.from({ length: amount }, (_, index) => ({
    name: `${names[index % names.length]} ${index + 1}`,
    tag: `bed ${((index * 7) % 23) + 1}`,
  }));
}

/** Half of them, and one more, have the same tag. */
const meadow = makeMany(1_200).map((plant, index) =>
  index < 600 && index !== 3 ? plant : { ...plant, tag: "meadow" },
);

describe("a list of plants", () => {
  testGarden(
    "is filtered by name, tag and id, ignoring accents, or by a chip, and counted in a chart",
    { plants: somePlants },
    async ({ page }) => {
      await inspect(page, "few");
      for (const [filter, names] of [
        ["aloe", ["Aloë vera"]],
        ["OFFICINALIS herbs", ["Rosmarinus officinalis", "Salvia officinalis"]],
        ["12", ["Aloë vera"]],
      ] as const) {
        await page.fill("#filter", filter);
        expect(await shownNames(page)).toEqual([...names]);
        expect(await page.textContent("#filter-note")).toBe(`${names.length} of 12 plants`);
      }
      await page.fill("#filter", "cactus");
      expect(await page.isVisible("#no-match")).toBe(true);
      await page.click("#clear-filter");
      expect(await shownNames(page)).toHaveLength(12);
      expect(await page.locator("#chart li").allTextContents()).toEqual([
        ...["herbs 4", "living room 2", "terrace 2"],
        ...["no tag 1", "bathroom 1", "kitchen 1", "shade 1"],
      ]);
      await page.click(".chip:has-text('terrace')");
      await page.waitForSelector("#garden-title:text-is('2 plants')");
      expect(await shownNames(page)).toEqual(["Lavandula angustifolia", "Olea europaea"]);
      expect(await page.getAttribute(".chip:has-text('terrace')", "aria-pressed")).toBe("true");
      await page.click(".chip:has-text('no tag')");
      await page.waitForSelector("#garden-title:text-is('1 plant')");
      expect(await shownNames(page)).toEqual(["Acer palmatum ‘Bloodgood’"]);
      await page.click(".chip:has-text('no tag')");
      expect(await shownNames(page)).toHaveLength(12);
    },
  );

  testGarden(
    "of one tag is complete in a large garden, and survives changes and a reload",
    { plants: meadow, isSignedIn: false },
    async ({ page, service, token }) => {
      const title = (text: string) => page.waitForSelector(`#garden-title:text-is('${text}')`);
      await page.check("#keep-token");
      await signIn(page, token);
      await page.click("#chips .link");
      await page.click(".chip:has-text('meadow')");
      await title("First 500 plants");
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      await title("601 plants");
      expect(await page.textContent("#garden-note")).toBe("tagged “meadow”");
      expect(await page.textContent(".chip:has-text('meadow')")).toBe("meadow601");

      await page.evaluate(() => scrollTo(0, 0));
      await deletePlants(page, "Digitalis 4");
      await title("600 plants");
      await page.reload();
      await title("First 500 plants");
      expect(await page.getAttribute(".chip:has-text('meadow')", "aria-pressed")).toBe("true");
      expect(await page.textContent("#rows .name")).toBe("Digitalis 4");
      await page.click("#open-add");
      const add = async (name: string, tag: string) => {
        await page.fill("#add-name", name);
        await page.fill("#add-tag", tag);
        await page.click("#add-button");
        await page.waitForSelector(`#notice:has-text('“${name}” was added')`);
      };
      await add("Poppy", "meadow");
      expect(await page.textContent("#garden-note")).toContain("tagged “meadow”");
      await add("Ivy", "bed 1");
      expect(await page.textContent("#garden-note")).not.toContain("meadow");
      expect(page.url()).toBe(`${service.url}/`);
    },
  );

  testGarden(
    "loads page by page while scrolling, and completely for a filter, with rows for those in view",
    { plants: makeMany(1_700) },
    async ({ page }) => {
      expect(await page.textContent("#garden-title")).toBe("1,700 plants");
      const note = (loaded: string) => `${loaded} loaded, more as you scroll · 23 tags`;
      expect(await page.textContent("#garden-note")).toBe(note("500"));
      expect(await page.textContent("#chart-note")).toBe("Counts the first 500 of 1,700 plants");
      await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
      await page.waitForSelector(`#garden-note:text-is('${note("1,000")}')`);
      // The end of the list is far away again, so nothing more is requested.
      await page.waitForTimeout(200);
      expect(await page.textContent("#garden-note")).toBe(note("1,000"));
      const held = Promise.withResolvers<void>();
      await page.route("**/plants?*", async (route) => {
        await held.promise;
        await route.continue();
      });
      await page.fill("#filter", "Hosta 1696");
      await page.waitForSelector("#no-match:has-text('Loading the rest')");
      await page.fill("#filter", "696");
      await page.waitForSelector(
        "#filter-note:text-is('1 among the first 1,000 of 1,700 plants. Loading the rest…')",
      );
      held.resolve();
      await page.waitForSelector("#filter-note:text-is('2 of 1,700 plants')");
      expect(await shownNames(page)).toEqual(["Hosta 696", "Hosta 1696"]);
      expect(await page.textContent("#chart-note")).toBe("Counts all 1,700 plants");
      await page.fill("#filter", "Hosta 1696");
      expect(await page.textContent("#garden-title")).toBe("1,700 plants");
      expect(await page.isVisible("#load-more")).toBe(false);
      // What a screen reader says, too.
      expect(await page.textContent("#announcer")).toBe("1 of 1,700 plants");
      await page.press("#filter", "Escape");
      await page.press("#filter", "Escape");
      expect(await page.evaluate(() => document.activeElement?.id)).not.toBe("filter");
      await page.waitForSelector("#table[aria-rowcount='1701']");
      for (const rowIndex of [1_701, 2]) {
        await page.evaluate((y) => scrollTo(0, y), rowIndex > 2 ? 1e9 : 0);
        await page.waitForSelector(`#rows .row[aria-rowindex='${rowIndex}']`);
        expect(await page.locator("#rows .row").count()).toBeLessThan(80);
      }
    },
  );

  testGarden(
    "is refreshed without signing in again, and keeps its filter and what can be undone",
    { plants: somePlants, hasClock: true },
    async ({ page, call }) => {
      await page.fill("#filter", "officinalis");
      await deletePlants(page, "Salvia officinalis");
      await call("POST /plants", '{"name":"Melissa officinalis"}');
      await page.click("#refresh");
      await page.waitForSelector("text=Melissa officinalis");
      expect(await shownNames(page)).toEqual(["Rosmarinus officinalis", "Melissa officinalis"]);
      await page.click("#undo-button");
      expect(await shownNames(page)).toHaveLength(3);
      await page.fill("#filter", "");
      await page.click(".chip:has-text('herbs')");
      await page.waitForSelector("#garden-title:text-is('4 plants')");
      await call("DELETE /plants/4");
      await page.focus("#garden-title");
      await page.keyboard.press("r");
      await page.waitForSelector("#garden-title:text-is('3 plants')");
      await page.route("**/plants?*", (route) => route.abort());
      await page.click("#refresh");
      await page.clock.fastForward(20_000);
      await page.waitForSelector("#notice.trouble:has-text('The list couldn’t be refreshed.')");
      expect(await shownNames(page)).toHaveLength(3);
    },
  );
});

testGarden(
  "trouble is shown, in the service's own words if it has some, with a way to retry",
  { plants: somePlants, isSignedIn: false },
  async ({ page, token, stored }) => {
    await page.check("#keep-token");
    await signIn(page, token);
    const detail = "The storage is busy. Try again in a moment.";
    const problem = JSON.stringify({ type: "urn:plantstore:problem:unavailable", detail });
    await page.route("**/plants?*", (route) =>
      route.fulfill({ status: 503, contentType: "application/problem+json", body: problem }),
    );
    await page.reload();
    await page.waitForSelector("#trouble:not([hidden])");
    expect(await page.textContent("#trouble-note")).toBe(detail);
    await inspect(page, "trouble");
    await page.unroute("**/plants?*");
    await page.click("#retry");
    await page.waitForSelector("#rows .row");
    expect(await page.isVisible("#trouble")).toBe(false);

    // What was typed is kept.
    await page.context().setOffline(true);
    await page.click("#open-add");
    await page.fill("#add-name", "Hedera helix");
    await page.click("#add-button");
    await page.waitForFunction(() => document.getElementById("add-error")?.textContent !== "");
    await page.context().setOffline(false);
    await page.click("#add-button");
    await page.waitForSelector("[aria-label='Delete Hedera helix']");
    expect(await stored()).toHaveLength(13);
  },
);

testGarden("the console works by keys alone", { isSignedIn: false }, async ({ page, token }) => {
  const { keyboard } = page;
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  await keyboard.type(token);
  await keyboard.press("Enter");
  await page.waitForSelector("#garden:not([hidden])");
  for (const name of ["Acer", "Betula", "Carex"]) {
    await keyboard.press("n");
    await keyboard.type(name);
    await keyboard.press("Enter");
    await page.waitForSelector(`[aria-label='Delete ${name}']`);
    await keyboard.press("Escape");
  }
  await keyboard.press("/");
  await keyboard.type("betula");
  expect(await shownNames(page)).toEqual(["Betula"]);
  await keyboard.press("Escape");
  expect(await shownNames(page)).toHaveLength(3);
  for (let steps = 0; steps < 30 && (await focused()) !== "Delete Acer"; steps++) {
    await keyboard.press("Tab");
  }
  await keyboard.press("ArrowDown");
  expect(await focused()).toBe("Delete Betula");
  await keyboard.press("Enter");
  expect(await shownNames(page)).toEqual(["Acer", "Carex"]);
  expect(await focused()).toBe("Delete Carex");
  await keyboard.press("z");
  expect(await shownNames(page)).toEqual(["Acer", "Betula", "Carex"]);
  expect(await focused()).toBe("Delete Betula");
  await page.uncheck("#use-shortcuts");
  await keyboard.press("n");
  expect(await page.isVisible("#add")).toBe(false);
});
