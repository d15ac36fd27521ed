/** Signing in to the console and viewing a garden: lists, filters, errors, keys, small screens. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { revokeTokens } from "../../testing/running-service.ts";
import { inspect, takePicture } from "./browser.ts";
import {
  deletePlants,
  edit,
  importFile,
  makeClient,
  select,
  shownNames,
  signIn,
  signOut,
  somePlants,
  useConsole,
  waitForCount,
} from "./signed-in.ts";

const testGarden = useConsole();

async function search(page: Page, text: string, title: string): Promise<void> {
  await page.fill("#filter", text);
  await waitForCount(page, title);
}

testGarden(
  "the page says what is wrong with a token, keeps one only if asked to, and retries after trouble",
  { plants: somePlants, isSignedIn: false },
  async ({ page, token }) => {
    await page.click("#sign-in-button");
    await page.waitForSelector("#token-error:text-is('Paste a token first.')");
    await page.waitForSelector("#token[aria-invalid=true]:focus");
    await inspect(page, "sign-in-refused");
    await signIn(page, token);
    expect(await page.inputValue("#token")).toBe("");
    await page.reload();
    await page.check("#keep-token");
    await signIn(page, token);
    // For this tab only.
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
    // In the service's own words, if it has some.
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
    await signOut(page);
    expect(await page.locator("#rows .row").count()).toBe(0);
    await page.reload();
    await page.waitForSelector("#token:visible");
  },
);

testGarden(
  "a password manager finds the token and a name for it when the form goes",
  { isSignedIn: false },
  async ({ page, token, user }) => {
    const field = page.locator("#token[type=password][autocomplete=current-password]");
    // As it was when the form was hidden.
    await page.evaluate(() => {
      const form = document.querySelector("#sign-in") as HTMLElement;
      const account = document.getElementById("account") as HTMLInputElement;
      new MutationObserver(() => {
        form.dataset.kept = account.value;
      }).observe(form, { attributeFilter: ["hidden"] });
    });
    await field.fill(token);
    await page.keyboard.press("Enter");
    await page.waitForSelector(`#sign-in[data-kept='${user} in ${user}']`, { state: "attached" });
    expect(await page.locator("[autocomplete=username]").isVisible()).toBe(false);
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
  },
);

testGarden(
  "a token that is revoked is asked for again, with the reason, and what was typed is still there",
  {},
  async ({ page, service, user }) => {
    await page.click("#first-add");
    await page.fill("#add-name", "Hedera helix");
    await revokeTokens(service, user);
    await page.waitForSelector("#sign-in-reason:has-text('expired or was revoked')");
    expect(await page.isVisible("#garden")).toBe(false);
    await signIn(page, (await makeClient(service, { user: "carol", garden: user })).token);
    await page.click("#add-button");
    await page.waitForSelector("#undo:has-text('“Hedera helix” was added')");
    // Whoever signs in next finds nothing of what was typed.
    await page.fill("#add-name", "Acer");
    await signOut(page);
    await signIn(page, (await makeClient(service)).token);
    await page.click("#first-add");
    expect(await page.inputValue("#add-name")).toBe("");
  },
);

testGarden(
  "a list is searched by words and by a tag's bar, and exported as it is shown",
  { plants: somePlants },
  async ({ page, user }) => {
    await page.waitForSelector("#tags .chip");
    const expectTree = async (selector: string, ...lines: string[]) =>
      expect(await page.locator(selector).ariaSnapshot()).toContain(lines.join("\n"));
    await expectTree("#tags", ' "Show one tag only":', '  - button "herbs 4"');
    await expectTree("#table", `- table "${user} 12 plants, 6 tags":`, "  - rowgroup:");
    await expectTree("#table", '- columnheader "Name":', '        - button "Name"');
    await expectTree("#rows", '- cell "Ficus lyrata":', '      - button "Ficus lyrata"');
    await search(page, "officinalis", "2 plants");
    await page.waitForSelector("#garden-note:has-text('with “officinalis”')");
    expect(await shownNames(page)).toEqual(["Rosmarinus officinalis", "Salvia officinalis"]);
    // What a screen reader says, too.
    expect(await page.textContent("#announcer")).toBe("2 plants with “officinalis”");
    await page.fill("#filter", "cactus");
    await page.waitForSelector("#no-match:has-text('No name or tag has “cactus”.')");
    await page.click("#clear-filter");
    await waitForCount(page, "12 plants");
    expect(await page.locator("#tags .chip").allTextContents()).toEqual([
      ...["herbs 4", "living room 2", "terrace 2"],
      ...["no tag 1", "bathroom 1", "kitchen 1", "shade 1"],
    ]);
    await page.click(".chip:has-text('terrace')");
    await waitForCount(page, "2 plants");
    const downloading = page.waitForEvent("download");
    await page.click("#export");
    const download = await downloading;
    expect(download.suggestedFilename()).toBe("plants-terrace.csv");
    const chunks = await Array.fromAsync(await download.createReadStream());
    const rows = "9,Lavandula angustifolia,terrace\r\n10,Olea europaea,terrace\r\n";
    expect(Buffer.concat(chunks).toString()).toBe(`\uFEFFid,name,tag\r\n${rows}`);
    await page.click(".chip[aria-pressed=true]:has-text('terrace')");
    await waitForCount(page, "12 plants");
  },
);

testGarden(
  "a long list loads page by page, sorts by a click on a header, and keeps the search in view",
  { plants: Array.from({ length: 1_700 }, (_, at) => ({ name: `Fig ${at}`, tag: `${at % 23}` })) },
  async ({ page }) => {
    const rowCount = (rows: number) => page.waitForSelector(`#table[aria-rowcount='${rows}']`);
    const scrollToEnd = () => page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await waitForCount(page, "1,700 plants");
    expect(await page.textContent("#garden-note")).toBe("1,700 plants, 23 tags");
    await rowCount(501);
    await scrollToEnd();
    await rowCount(1_001);
    expect(await page.locator("#filter").boundingBox()).toMatchObject({ y: 8 });
    expect(await page.locator("#rows .row").count()).toBeLessThan(80);
    await page.click("#sort-id");
    await page.waitForSelector("[aria-sort=descending] #sort-id");
    expect((await shownNames(page)).slice(0, 2)).toEqual(["Fig 1699", "Fig 1698"]);
    await scrollToEnd();
    await rowCount(1_001);
    await page.click("#sort-tag");
    await page.waitForSelector("[aria-sort=ascending] #sort-tag");
    await rowCount(1_701);
    expect((await shownNames(page)).slice(0, 3)).toEqual(["Fig 0", "Fig 23", "Fig 46"]);
    expect(new URL(page.url()).hash).toBe("#sort=tag");
  },
);

testGarden(
  "the address has what is shown: Back closes a row and a filter, and a changed tag is followed",
  { plants: somePlants },
  async ({ page }) => {
    const hashOf = () => new URL(page.url()).hash;
    await search(page, "o", "11 plants");
    await search(page, "officinalis", "2 plants");
    await edit(page, "Salvia");
    expect(hashOf()).toBe("#q=officinalis&plant=7");
    await page.goBack();
    await page.waitForSelector("#edit", { state: "detached" });
    await page.goBack();
    await waitForCount(page, "12 plants");
    expect([hashOf(), await page.inputValue("#filter")]).toEqual(["", ""]);
    await page.goForward();
    await waitForCount(page, "2 plants");
    expect(await page.inputValue("#filter")).toBe("officinalis");
    // Whoever closes a row or a filter by hand doesn't meet it again on the way back.
    await edit(page, "Salvia");
    await page.keyboard.press("Escape");
    await page.waitForURL(/q=officinalis$/);
    await page.press("#filter", "Escape");
    await page.waitForURL(/\/$/);
    await page.goto(`${page.url()}#tag=terrace`);
    await waitForCount(page, "2 plants");
  },
);

testGarden(
  "a row that is opened right after another was closed stays open",
  { plants: somePlants },
  async ({ page }) => {
    await edit(page, "Salvia");
    // Faster than the browser goes back.
    await page.evaluate(() => {
      const press = { key: "Escape", bubbles: true };
      document.querySelector("#edit-name")?.dispatchEvent(new KeyboardEvent("keydown", press));
      document.querySelector<HTMLElement>("#rows .row:has(.opener) .opener")?.click();
    });
    await page.waitForURL(/plant=8$/);
    await page.waitForSelector("#edit-name:focus");
  },
);

testGarden(
  "a link to a plant opens it, in the list or above it",
  { plants: somePlants, isSignedIn: false },
  async ({ page, service, token }) => {
    await page.check("#keep-token");
    await signIn(page, token);
    for (const address of ["/?plant=7", "/#tag=terrace&plant=7"]) {
      await page.goto(`${service.url}${address}`);
      await page.reload();
      await page.waitForSelector("#edit-name:focus");
      expect(await page.inputValue("#edit-name")).toBe("Salvia officinalis");
    }
    await inspect(page, "plant-above");
    await page.goto(`${service.url}/#plant=99`);
    await page.waitForSelector("#notice:has-text('There is no plant 99.')");
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
  await press("n");
  for (const name of ["Acer", "Betula", "Carex"]) {
    await keyboard.type(name);
    await press("Tab");
    await keyboard.type(`${name} bed`);
    await press("Enter");
    await page.waitForSelector(`.row:has-text('${name}')`);
    await page.waitForSelector("#add-name:focus");
  }
  await press("Escape", "/");
  await keyboard.type("betula");
  await waitForCount(page, "1 plant");
  await press("ArrowDown");
  expect(await focused()).toBe("Betula");
  await press("ArrowUp", "Escape");
  await waitForCount(page, "3 plants");
  // From the title, where one is after signing in.
  await page.focus("#garden-title");
  await press("ArrowDown", "ArrowDown", "Enter");
  await page.waitForSelector("#edit-name:focus");
  expect(await page.inputValue("#edit-name")).toBe("Betula");
  await press("Escape");
  await page.waitForSelector(".opener:has-text('Betula'):focus");
  await press("Delete");
  await page.waitForSelector("#undo:has-text('“Betula” was deleted.')");
  expect(await shownNames(page)).toEqual(["Acer", "Carex"]);
  expect(await focused()).toBe("Carex");
  await press("z");
  await waitForCount(page, "3 plants");
  expect(await focused()).toBe("Betula");
});

testGarden("a key shows all keys, and single letters can be turned off", {}, async ({ page }) => {
  await page.waitForSelector("#empty");
  await page.keyboard.press("?");
  await page.waitForSelector("#keys[open]");
  await inspect(page, "keys");
  await page.uncheck("#use-letters");
  await page.keyboard.press("Escape");
  await page.waitForSelector("#keys", { state: "hidden" });
  await page.keyboard.press("n");
  expect(await page.isVisible("#add")).toBe(false);
});

testGarden(
  "Tab leads from the search to the actions, one plant, and the tags",
  { plants: somePlants },
  async ({ page }) => {
    await page.waitForSelector(".chip");
    await page.focus("#filter");
    const seen: string[] = [];
    for (let presses = 0; presses < 10; presses++) {
      await page.keyboard.press("Tab");
      const name = await page.evaluate(() => {
        const element = document.activeElement as HTMLElement;
        return element.id || element.getAttribute("aria-label") || element.textContent;
      });
      seen.push(name);
    }
    expect(seen).toEqual([
      ...["open-import", "export", "open-add", "select-all", "sort-name", "sort-tag", "sort-id"],
      ...["Select Acer palmatum ‘Bloodgood’", "Acer palmatum ‘Bloodgood’", "herbs 4"],
    ]);
  },
);

testGarden(
  "nothing moves while the page loads again",
  {
    plants: Array.from({ length: 600 }, (_, at) => ({ name: `Fig ${at}`, tag: `${at % 7}` })),
    isSignedIn: false,
  },
  async ({ page, token }) => {
    await page.check("#keep-token");
    await signIn(page, token);
    for (const viewport of [
      { width: 1280, height: 860 },
      { width: 390, height: 700 },
    ]) {
      await page.setViewportSize(viewport);
      await page.reload();
      await page.waitForSelector(".chip");
      const shift = await page.evaluate(
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
      expect(shift).toBeLessThan(0.1);
    }
    await page.setViewportSize({ width: 1280, height: 860 });
  },
);

/** Absent from the types of TypeScript. */
interface LayoutShift extends PerformanceEntry {
  readonly value: number;
}

/** Everything that can be tapped, and is smaller than a fingertip. */
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

testGarden(
  "the console, with an import, fits screens of 390 and 320 pixels, with targets of 44",
  {
    plants: somePlants,
    viewport: { width: 390, height: 700 },
    deviceScaleFactor: 2,
    hasTouch: true,
    isMobile: true,
  },
  async ({ page }) => {
    const check = async (name: string) => {
      for (const width of [320, 390]) {
        await page.setViewportSize({ width, height: 700 });
        expect(await findSmallTargets(page)).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
        await takePicture(page, `${width}-${name}`);
      }
    };
    await page.waitForSelector(".chip");
    const first = await page.locator("#rows .row").first().boundingBox();
    expect(first?.y).toBeLessThan(261);
    await check("list");
    // The other parts have the colors of large screens, where they are inspected.
    await inspect(page, "390-list");
    await page.click("#open-add");
    await check("adding");
    await page.click("#close-add");
    await edit(page, "Aloë");
    await check("editing");
    await inspect(page, "390-editing");
    await page.click("#edit-close");
    await select(page, "Ficus");
    expect(await page.locator("#rows .row:has(:checked) > .name").allTextContents()).toEqual([
      "Ficus lyrata",
    ]);
    await check("selecting");
    await page.click("#select-done");

    await page.click("#open-more");
    await check("more");
    await page.click("#open-import");
    await check("import");
    const invalid = Array.from({ length: 60 }, (_, index) => `x${index},${"Fig ".repeat(20)},`);
    await importFile(page, "id,name,tag", ...invalid, ",Fig,");
    await page.waitForSelector("#import-note:has-text('60 of 61 rows are invalid.')");
    await check("import-invalid");
    await inspect(page, "390-import-invalid");
    await importFile(page, "id,name,tag", "1,Monstera,living room", ",Fig,", ",Ivy,");
    await page.check("#import-changes");
    await check("import-preview");
    await page.click("#import-next:text-is('Add 2 and change 1 plant')");
    await waitForCount(page, "14 plants");
    await page.click("#import-next:text-is('Close')");

    await deletePlants(page, "Aloë vera");
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    const noticeTop = (await page.locator("#undo").boundingBox())?.y ?? 0;
    for (const selector of ["#rows .row", ".footer"]) {
      const { y, height } = (await page.locator(selector).last().boundingBox()) ?? {
        y: 0,
        height: 0,
      };
      expect(Math.floor(y + height)).toBeWithin(1, noticeTop + 1);
    }
    await page.click("#open-more");
    await page.click("#open-activity");
    await page.waitForSelector("#activity-list li");
    await check("activity");
    await page.click("#close-activity");
    await page.click("#open-me");
    await check("me");
  },
);
