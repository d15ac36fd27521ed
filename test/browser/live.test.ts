/** The console while others work in the same garden, in a real browser. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { startService } from "../end-to-end/running-service.ts";
import { FaultyProxy } from "../faulty-proxy.ts";
import { inspect, isBrowserMissing, openPage } from "./browser.ts";
import {
  deletePlants,
  makeGarden,
  type OpenGarden,
  shownNames,
  signIn,
  somePlants,
  useConsole,
  waitForTitle,
} from "./signed-in.ts";

const testGarden = useConsole();

const many = Array.from({ length: 300 }, (_, index) => ({ name: `Fig ${index + 1}`, tag: "bed" }));

/** Somebody else, who changes the garden. */
async function meet({ service, call }: OpenGarden, user: string) {
  const { garden } = await (await call("GET /me")).json();
  const token = await makeGarden(service, [], { user, garden });
  return async (request: string, plant?: object) => {
    const body = plant && JSON.stringify(plant);
    const { status } = await service.call(request, { token, ...(body && { body }) });
    expect(status).toBeLessThan(300);
  };
}

/** The rows in view, and where they are. */
function readView(page: Page): Promise<(string | number)[][]> {
  return page.evaluate(() => {
    const rows = [...document.querySelectorAll("#rows .row")];
    return rows
      .map((row): [string, number] => [
        row.querySelector(".number")?.textContent ?? "",
        Math.round(row.getBoundingClientRect().top),
      ])
      .filter(([, top]) => top > 0 && top < innerHeight);
  });
}

async function waitForNews(page: Page, text: string): Promise<void> {
  await page.waitForSelector(`#news:text-is('${text}')`);
}

testGarden(
  "what others do appears in the list, changes rows in place, and marks those that are gone",
  { plants: somePlants.slice(0, 5) },
  async (garden) => {
    const { page } = garden;
    const bob = await meet(garden, "bob");
    await bob("POST /plants", { name: "Fern", tag: "shade" });
    await page.waitForSelector("#rows .row:has-text('Fern')");
    await waitForTitle(page, "6 plants");
    await page.focus(".opener:has-text('Ficus')");
    const before = await readView(page);
    await bob("PUT /plants/2", { name: "Ficus elastica", tag: "hall" });
    await page.waitForSelector(".row:has-text('hall') .opener:has-text('Ficus elastica'):focus");
    await bob("DELETE /plants/3");
    await page.waitForSelector("#rows .deleted:has-text('Dryopteris')");
    await waitForTitle(page, "5 plants");
    expect(await readView(page)).toEqual(before);
    await page.waitForSelector(".chip:has-text('hall 1')");
    await inspect(page, "live-left");
    // The next change of one's own clears it.
    await deletePlants(page, "Ficus elastica");
    const left = ["Monstera deliciosa", "Rosmarinus officinalis", "Ocimum basilicum", "Fern"];
    expect(await shownNames(page)).toEqual(left);
  },
);

testGarden(
  "what others do moves nothing that is in view: new plants wait behind a button",
  { plants: many },
  async (garden) => {
    const { page } = garden;
    const bob = await meet(garden, "bob");
    await page.click("#newest");
    await page.waitForSelector(".row:has-text('Fig 300')");
    await bob("POST /plants", { name: "Ivy" });
    await waitForNews(page, "1 new plant");
    await waitForTitle(page, "301 plants");

    // In the middle of the list, with the pointer on a row.
    await page.mouse.move(400, 500);
    await page.mouse.wheel(0, 6_000);
    await page.waitForFunction(() => scrollY === 6_000);
    const before = await readView(page);
    const pointed = await page.textContent("#rows .row:hover .number");
    await bob("POST /plants", { name: "Moss" });
    await bob("DELETE /plants/299");
    const [inView] = before[3] ?? [];
    await bob(`DELETE /plants/${inView}`);
    await page.waitForSelector("#rows .deleted");
    await waitForNews(page, "2 new plants");
    expect(await readView(page)).toEqual(before);
    expect(await page.textContent("#rows .row:hover .number")).toBe(pointed);
    await inspect(page, "live-news");

    await page.click("#news");
    await page.waitForSelector(".row:has-text('Moss') .opener:focus");
    expect((await shownNames(page)).slice(0, 4)).toEqual(["Moss", "Ivy", "Fig 300", "Fig 298"]);
    expect(await page.locator("#news, #rows .deleted").count()).toBe(0);
    await waitForTitle(page, "300 plants");
  },
);

testGarden(
  "what this page did is no news: only other pages say that it's new",
  { plants: many },
  async (garden) => {
    const { page, service, token } = garden;
    await using other = await openPage(`${service.url}/`, {});
    await signIn(other.page, token);
    for (const each of [page, other.page]) await each.click("#newest");
    await page.waitForSelector(".row:has-text('Fig 300')");
    await page.evaluate(() => {
      new MutationObserver(() => {
        if (document.getElementById("news")) document.title = "news";
      }).observe(document.body, { subtree: true, attributes: true, childList: true });
    });
    // The stream is faster than the response.
    const isCreation = ({ pathname }: URL) => pathname === "/plants";
    await page.route(isCreation, async (route) => {
      const response = await route.fetch();
      await waitForNews(other.page, "1 new plant");
      await Bun.sleep(500);
      await route.fulfill({ response });
    });
    await page.click("#open-add");
    await page.fill("#add-name", "Ivy");
    await page.click("#add-button");
    await page.waitForSelector("#notice:has-text('“Ivy” was added')");
    await page.unroute(isCreation);
    const rows = Array.from({ length: 299 }, (_, index) => `Rose ${index}`);
    const buffer = Buffer.from(["name", ...rows].join("\n"));
    await page.setInputFiles("#import-file", { name: "r.csv", mimeType: "text/csv", buffer });
    await page.click("#transfer-actions button:text-matches('^Add ')");
    await waitForNews(other.page, "300 new plants");
    await waitForTitle(page, "600 plants");
    // Later events come after these, which would have been shown by then.
    await (await meet(garden, "bob"))("PUT /plants/600", { name: "Last rose" });
    await page.waitForSelector(".row:has-text('Last rose')");
    expect(await page.title()).toBe("Plant Store");
  },
);

testGarden(
  "the activity panel says who did what and when, the newest first, as it happens",
  { plants: [], access: { user: "alice" } },
  async (garden) => {
    const { page } = garden;
    const bob = await meet(garden, "bob");
    const carol = await meet(garden, "carol");
    for (const name of ["Fern", "Ivy", "Moss", "Rose"]) await bob("POST /plants", { name });
    await carol("PUT /plants/1", { name: "Royal fern", tag: "pond" });
    await waitForTitle(page, "4 plants");
    await page.click("#open-activity");
    await page.waitForSelector("#activity-list li");
    expect(await page.locator("#activity-list p").allTextContents()).toEqual([
      "carol changed Fern → Royal fern (tag none → pond)",
      "bob added 4 plants: Rose, Moss, Ivy, …",
    ]);
    await carol("DELETE /plants/2");
    await page.waitForSelector("#activity-list li:has-text('carol deleted Ivy')");
    expect(await page.textContent("#activity time")).toMatch(/^\d+:\d\d [AP]M$/);
    await inspect(page, "activity");
    await page.click("#activity a:text-is('Royal fern')");
    await page.waitForSelector("#plant-title:has-text('Royal fern')");
    await page.click("#plant-close");
    await page.click("#open-activity");
    await page.waitForSelector("#activity-list", { state: "hidden" });
  },
);

test.skipIf(isBrowserMissing)("the page says that the service is away, and goes on", async () => {
  const service = await startService();
  const token = await makeGarden(service, somePlants.slice(0, 5));
  const proxy = await FaultyProxy.open(service.url);
  const { port } = new URL(proxy.url);
  await using opened = await openPage(`${proxy.url}/`, { isFresh: true });
  const { page } = opened;
  await signIn(page, token);
  await page.waitForSelector(".chip");
  proxy.close();
  await page.waitForSelector("#offline:has-text('Not connected, trying again')");
  await inspect(page, "offline");
  const body = JSON.stringify({ name: "Ivy", tag: "wall" });
  await service.call("POST /plants", { token, body });
  const next = await FaultyProxy.open(service.url, Number(port));
  await page.waitForSelector(".row:has-text('Ivy')");
  await page.waitForSelector("#offline", { state: "detached" });
  await waitForTitle(page, "6 plants");
  expect(await page.textContent(".chip:has-text('wall')")).toBe("wall 1");
  next.close();
  await service[Symbol.asyncDispose]();
});
