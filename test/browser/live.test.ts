/** The console while others work in the same garden, in a real browser. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { FaultyProxy } from "../../testing/faulty-proxy.ts";
import { inspect } from "./browser.ts";
import {
  makeClient,
  shownNames,
  signIn,
  somePlants,
  useConsole,
  waitForCount,
} from "./signed-in.ts";

const testGarden = useConsole();

/** The rows in view, and where they are. */
function readView(page: Page): Promise<(string | number)[][]> {
  return page.evaluate(() =>
    [...document.querySelectorAll("#rows .row")]
      .map((row): [string, number] => [
        row.querySelector(":scope > .number")?.textContent ?? "",
        Math.round(row.getBoundingClientRect().top),
      ])
      .filter(([, top]) => top > 0 && top < innerHeight),
  );
}

testGarden(
  "what others do appears in the list and, line by line, as activity: who did what and when",
  { plants: somePlants.slice(0, 5) },
  async ({ page, service, user: garden }) => {
    const { store: bob } = await makeClient(service, { user: "bob", garden });
    const { store: carol } = await makeClient(service, { user: "carol", garden });
    await bob.create({ name: "Fern", tag: "shade" });
    await bob.create({ name: "Ivy" });
    await waitForCount(page, "7 plants");
    await page.click("#news:text-is('2 new plants')");
    await page.waitForSelector("#rows .row:has-text('Ivy')");
    await page.focus(".opener:has-text('Ficus')");
    const before = await readView(page);
    await carol.put(2, { name: "Ficus elastica", tag: "hall" });
    await page.waitForSelector(".row:has-text('hall') .opener:has-text('Ficus elastica'):focus");
    await carol.delete(3);
    await page.waitForSelector("#rows .deleted:has-text('Dryopteris')");
    await waitForCount(page, "6 plants");
    expect(await readView(page)).toEqual(before);
    await page.waitForSelector(".chip:has-text('hall 1')");

    expect((await page.locator("#activity-list p").allTextContents()).slice(0, 3)).toEqual([
      "carol deleted Dryopteris filix-mas",
      "carol changed Ficus lyrata → Ficus elastica (tag living room → hall)",
      "bob added 2 plants: Ivy, Fern",
    ]);
    await bob.delete(7);
    await page.waitForSelector("#activity-list li:has-text('bob deleted Ivy')");
    expect(await page.locator("#activity time").first().textContent()).toMatch(/^\d+:\d\d [AP]M$/);
    await inspect(page, "activity");
    await page.click("#activity a:text-is('Ficus elastica')");
    await page.waitForSelector("#edit-name:focus");
    expect(await page.inputValue("#edit-name")).toBe("Ficus elastica");
  },
);

testGarden(
  "what is done here appears as activity, too, and its undo as a line of its own",
  { plants: somePlants.slice(0, 3) },
  async ({ page, user }) => {
    await page.click("#select-all");
    await page.fill("#new-tag", "hall");
    await page.press("#new-tag", "Enter");
    await page.waitForSelector(`#activity-list li:has-text('${user} moved 3 plants to hall')`);

    await page.keyboard.press("z");

    await page.waitForSelector(
      `#activity-list li:first-child:has-text('${user} moved 3 plants: ')`,
    );
    expect(await page.locator("#activity-list li").count()).toBe(3);
  },
);

testGarden(
  "nothing moves what is in view: others' new plants wait behind a button",
  { plants: Array.from({ length: 300 }, (_, index) => ({ name: `Fig ${index + 1}`, tag: "bed" })) },
  async ({ page, store: bob }) => {
    await page.click("#sort-id");
    await page.waitForSelector("[aria-sort=ascending] #sort-id");
    await page.click("#sort-id");
    await page.waitForSelector(".row:has-text('Fig 300')");
    await bob.create({ name: "Ivy" });
    await page.waitForSelector("#news:text-is('1 new plant')");
    await waitForCount(page, "301 plants");

    // In the middle of the list, with the pointer on a row.
    await page.mouse.move(400, 500);
    await page.mouse.wheel(0, 4_000);
    await page.waitForFunction(() => scrollY === 4_000);
    const before = await readView(page);
    const [inView] = before[3] ?? [];
    await bob.create({ name: "Moss" });
    await bob.delete(299);
    await bob.delete(Number(inView));
    await page.waitForSelector("#rows .deleted");
    await page.waitForSelector("#news:text-is('2 new plants')");
    expect(await readView(page)).toEqual(before);
    await inspect(page, "live-news");

    await page.click("#news");
    await page.waitForSelector(".row:has-text('Moss') .opener:focus");
    expect((await shownNames(page)).slice(0, 4)).toEqual(["Moss", "Ivy", "Fig 300", "Fig 298"]);
    expect(await page.locator("#news, #rows .deleted").count()).toBe(0);
    await waitForCount(page, "300 plants");
  },
);

testGarden(
  "the page says that the service is away, and goes on",
  { plants: somePlants.slice(0, 5), isSignedIn: false },
  async ({ page, service, token, store }) => {
    const proxy = await FaultyProxy.open(service.url);
    await page.goto(`${proxy.url}/`);
    await signIn(page, token);
    await page.waitForSelector(".chip");
    proxy.close();
    await page.waitForSelector("#live[aria-label='Not connected, trying again']");
    await page.waitForSelector("#offline:has-text('Not connected, trying again')");
    await inspect(page, "offline");
    await store.create({ name: "Ivy", tag: "wall" });
    const next = await FaultyProxy.open(service.url, proxy.port);
    await page.click("#news");
    await page.waitForSelector(".row:has-text('Ivy')");
    await page.waitForSelector("#offline", { state: "detached" });
    await waitForCount(page, "6 plants");
    await page.waitForSelector(".chip:has-text('wall 1')");
    next.close();
  },
);

testGarden(
  "a list that couldn't be loaded comes by itself once the service is back",
  { plants: somePlants, isSignedIn: false },
  async ({ page, service, token }) => {
    const proxy = await FaultyProxy.open(service.url);
    await page.goto(`${proxy.url}/`);
    await signIn(page, token);
    await page.waitForSelector(".chip");
    proxy.close();
    await page.click(".chip:has-text('terrace')");
    await page.waitForSelector("#trouble");

    const next = await FaultyProxy.open(service.url, proxy.port);

    await page.waitForSelector(".row:has-text('Olea europaea')");
    next.close();
  },
);
