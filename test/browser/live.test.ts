/** The console while others work in the same garden, and while the service is away. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { FaultyProxy } from "../../testing/faulty-proxy.ts";
import { expectAccessible } from "./browser.ts";
import {
  makeClient,
  shownNames,
  signIn,
  twelvePlants,
  useConsole,
  waitForCount,
} from "./signed-in.ts";

/** Its tests also fail if the page logs errors, calls other hosts or violates its policy. */
const testPage = useConsole();

const threePlants = [
  { name: "Monstera deliciosa", tag: "living room" },
  { name: "Ficus lyrata", tag: "living room" },
  { name: "Dryopteris filix-mas", tag: "shade" },
];

/** The rows in view, by the ids of their plants, and how far they are from the top. */
function readRowsInView(page: Page): Promise<{ id: string; top: number }[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll("#rows .row")]
      .map((row) => ({
        id: row.querySelector(":scope > .number")?.textContent ?? "",
        top: Math.round(row.getBoundingClientRect().top),
      }))
      .filter(({ top }) => top > 0 && top < innerHeight),
  );
}

testPage(
  "plants that others add are counted at once, and wait behind a button",
  { plants: threePlants },
  async ({ page, service, user: garden }) => {
    const { store: bob } = await makeClient(service, { user: "bob", garden });

    await bob.create({ name: "Fern", tag: "shade" });
    await bob.create({ name: "Ivy" });
    await waitForCount(page, "5 plants");
    await page.waitForSelector("#news:text-is('2 new plants')");
    expect(await page.locator("#rows .row").count()).toBe(3);

    await page.click("#news");
    await page.waitForSelector("#rows .row:has-text('Ivy')");
  },
);

testPage(
  "what others change or delete is shown in its row, and moves neither rows nor the focus",
  { plants: threePlants },
  async ({ page, service, user: garden }) => {
    const { store: carol } = await makeClient(service, { user: "carol", garden });
    await page.waitForSelector(".chip");
    await page.focus(".opener:has-text('Ficus')");
    const rowsBefore = await readRowsInView(page);

    await carol.put(2, { name: "Ficus elastica", tag: "hall" });
    await page.waitForSelector(".row:has-text('hall') .opener:has-text('Ficus elastica'):focus");
    await page.waitForSelector(".chip:has-text('hall 1')");
    await carol.delete(3);
    await page.waitForSelector("#rows .deleted:has-text('Dryopteris')");
    await waitForCount(page, "2 plants");

    expect(await readRowsInView(page)).toEqual(rowsBefore);
  },
);

testPage(
  "the activity says who did what and when, as it happens",
  { plants: threePlants },
  async ({ page, service, user: garden }) => {
    const { store: bob } = await makeClient(service, { user: "bob", garden });
    const { store: carol } = await makeClient(service, { user: "carol", garden });

    await bob.create({ name: "Fern", tag: "shade" });
    await bob.create({ name: "Ivy" });
    await carol.put(2, { name: "Ficus elastica", tag: "hall" });
    await carol.delete(3);
    await bob.delete(5);
    await page.waitForSelector("#activity-list li:has-text('bob deleted Ivy')");

    expect(await page.locator("#activity-list p").allTextContents()).toEqual([
      "bob deleted Ivy",
      "carol deleted Dryopteris filix-mas",
      "carol changed Ficus lyrata → Ficus elastica (tag living room → hall)",
      "bob added 2 plants: Ivy, Fern",
      `${garden} added 3 plants: Dryopteris filix-mas, Ficus lyrata, Monstera deliciosa`,
    ]);
    expect(await page.locator("#activity time").first().textContent()).toMatch(/^\d+:\d\d [AP]M$/);
    await expectAccessible(page, "activity");

    await page.click("#activity a:text-is('Ficus elastica')");
    await page.waitForSelector("#edit-name:focus");
    expect(await page.inputValue("#edit-name")).toBe("Ficus elastica");
  },
);

testPage(
  "the user's own changes are in the activity, too, and an undo is a line of its own",
  { plants: threePlants },
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

testPage(
  "nothing that others do moves the rows in view of somebody who has scrolled",
  { plants: Array.from({ length: 300 }, (_, index) => ({ name: `Fig ${index + 1}`, tag: "bed" })) },
  async ({ page, store: bob }) => {
    // By id, the highest first: new plants belong above all others.
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
    const rowsBefore = await readRowsInView(page);
    await bob.create({ name: "Moss" });
    await bob.delete(299);
    await bob.delete(Number(rowsBefore[3]?.id));
    await page.waitForSelector("#rows .deleted");
    await page.waitForSelector("#news:text-is('2 new plants')");
    expect(await readRowsInView(page)).toEqual(rowsBefore);
    await expectAccessible(page, "live-news");

    await page.click("#news");
    await page.waitForSelector(".row:has-text('Moss') .opener:focus");
    expect((await shownNames(page)).slice(0, 4)).toEqual(["Moss", "Ivy", "Fig 300", "Fig 298"]);
    expect(await page.locator("#news").count()).toBe(0);
    expect(await page.locator("#rows .deleted").count()).toBe(0);
    await waitForCount(page, "300 plants");
  },
);

testPage(
  "the page says that the service is away, and shows what it missed once it's back",
  { plants: threePlants, isSignedIn: false },
  async ({ page, service, token, store }) => {
    const proxy = await FaultyProxy.open(service.url);
    await page.goto(`${proxy.url}/`);
    await signIn(page, token);
    await page.waitForSelector(".chip");

    proxy.close();
    await page.waitForSelector("#live[aria-label='Not connected, trying again']");
    await page.waitForSelector("#offline:has-text('Not connected, trying again')");
    await expectAccessible(page, "offline");
    await store.create({ name: "Ivy", tag: "wall" });

    const reopenedProxy = await FaultyProxy.open(service.url, proxy.port);
    await page.click("#news");
    await page.waitForSelector(".row:has-text('Ivy')");
    await page.waitForSelector("#offline", { state: "detached" });
    await waitForCount(page, "4 plants");
    await page.waitForSelector(".chip:has-text('wall 1')");
    reopenedProxy.close();
  },
);

testPage(
  "a list that couldn't be loaded comes by itself once the service is back",
  { plants: twelvePlants, isSignedIn: false },
  async ({ page, service, token }) => {
    const proxy = await FaultyProxy.open(service.url);
    await page.goto(`${proxy.url}/`);
    await signIn(page, token);
    await page.waitForSelector(".chip");
    proxy.close();
    await page.click(".chip:has-text('terrace')");
    await page.waitForSelector("#trouble");

    const reopenedProxy = await FaultyProxy.open(service.url, proxy.port);

    await page.waitForSelector(".row:has-text('Olea europaea')");
    reopenedProxy.close();
  },
);
