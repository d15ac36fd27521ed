/** Signing in to the console and viewing a garden: lists, filters, errors, keys, small screens. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { revokeTokens, waitFor } from "../end-to-end/running-service.ts";
import { inspect, takePicture } from "./browser.ts";
import {
  deletePlants,
  makeGarden,
  openCard,
  shownNames,
  signIn,
  signOut,
  somePlants,
  useConsole,
  waitForTitle,
} from "./signed-in.ts";

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

/** The name and the lines of the file that it downloads. */
async function exportFile(page: Page): Promise<string[]> {
  const downloading = page.waitForEvent("download");
  await page.click("#export");
  const download = await downloading;
  const chunks = await Array.fromAsync(await download.createReadStream());
  return [download.suggestedFilename(), ...Buffer.concat(chunks).toString().split("\r\n")];
}

function hashOf(page: Page): string {
  return new URL(page.url()).hash;
}

testGarden(
  "the page says what is wrong with a token, keeps one only if asked to, and retries after trouble",
  { plants: somePlants, isSignedIn: false },
  async ({ page, token, service }) => {
    await page.click("#sign-in-button");
    await page.waitForSelector("#token-error:text-is('Paste a token first.')");
    await page.waitForSelector("#token[aria-invalid=true]:focus");
    await inspect(page, "sign-in-refused");
    await page.keyboard.type("y");
    expect(await page.textContent("#token-error")).toBe("");

    await signIn(page, token);
    expect([page.url(), await page.inputValue("#token")]).toEqual([`${service.url}/`, ""]);
    expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
    await page.reload();
    await page.waitForSelector("#token:visible");
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
  "a token is asked for again when it is revoked, with the reason, and what was begun is finished",
  { plants: somePlants },
  async ({ page, service, call }) => {
    // Without them, little but the click can find out that the token is revoked.
    await page.route("**/events*", (route) => route.abort());
    const { user } = await (await call("GET /me")).json();
    await page.click("#open-add");
    await page.fill("#add-name", "Hedera helix");
    await revokeTokens(service, user);
    await waitFor(async () => (await call("GET /me")).status === 401 || undefined);
    // If the page has found out before, the button is hidden.
    await page.locator("#add-button").evaluate((element: HTMLElement) => element.click());
    await page.waitForSelector("#sign-in-reason:has-text('expired or was revoked')");
    expect(await page.isVisible("#garden")).toBe(false);
    // The request that was refused goes on, with any token to the same garden.
    await signIn(page, await makeGarden(service, [], { user: "carol", garden: user }));
    await page.waitForSelector("#notice:has-text('“Hedera helix” was added')");
    // Whoever signs in next finds nothing of what was typed.
    await page.fill("#add-name", "Acer");
    await signOut(page);
    await signIn(page, await makeGarden(service));
    expect(await page.inputValue("#add-name")).toBe("");
  },
);

testGarden(
  "a list is searched by words and by a tag's bar, and exported as it is shown",
  { plants: somePlants },
  async ({ page }) => {
    await page.waitForSelector("#tags .chip");
    const expectTree = async (selector: string, ...lines: string[]) =>
      expect(await page.locator(selector).ariaSnapshot()).toContain(lines.join("\n"));
    await expectTree("#tags", ' "Show one tag only":', '  - button "herbs 4"');
    await expectTree("#table", '- table "12 plants":', "  - rowgroup:", '    - row "Id Name Tag":');
    await expectTree("#rows", '- cell "Ficus lyrata":', '      - button "Ficus lyrata"');
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
    expect(await exportFile(page)).toEqual([
      "plants-terrace.csv",
      "\uFEFFid,name,tag",
      "9,Lavandula angustifolia,terrace",
      "10,Olea europaea,terrace",
      "",
    ]);
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

testGarden(
  "a plant opens by keys, and Esc goes back to its row",
  { plants: [{ id: 7, name: "Fern", tag: "  hall " }] },
  async ({ page }) => {
    await page.focus(".opener");
    await page.keyboard.press("Enter");
    const tree = await page.locator("#plant").ariaSnapshot();
    expect(tree).toMatch(/- dialog ".+":\n.+\n? *- heading ".+" \[level=2\]/);
    await inspect(page, "plant");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => document.activeElement?.className === "opener");
  },
);

const touch = { deviceScaleFactor: 2, hasTouch: true, isMobile: true };
const height = 700;

/** More than the activity panel shows at first. */
const severalPages = [
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
  { plants: severalPages, viewport: { width: 390, height }, ...touch },
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
