/** The console when responses are lost, others change the garden, or a deletion waits. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Route } from "playwright-core";
import { type RunningService, startService } from "../end-to-end/running-service.ts";
import { isBrowserMissing, watchPages } from "./browser.ts";
import { harvest, makeGardener, openGarden, shownNames, signIn, sow } from "./signed-in.ts";

watchPages();
let service: RunningService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.[Symbol.asyncDispose]());

/** The service gets the request; the page never sees the response. */
async function loseResponse(route: Route): Promise<void> {
  await route.fetch();
  await route.abort();
}

const limited = {
  status: 429,
  headers: { "Retry-After": "99", "Content-Type": "application/problem+json" },
  body: JSON.stringify({ type: "urn:plantstore:problem:rate-limited", detail: "Too soon." }),
};

describe.skipIf(isBrowserMissing)("a plant whose response was lost is stored once", () => {
  test("even if the next try meets a rate limit", async () => {
    const { token } = await makeGardener(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.route("**/plants", loseResponse);
    await page.click("#first-add");
    await page.fill("#add-name", "Acer");
    await page.click("#add-button");
    await page.waitForSelector("#add-error:has-text('did not respond')");
    await page.unroute("**/plants");
    await page.route("**/plants", (route) => route.fulfill(limited));
    await page.click("#add-button");
    await page.waitForSelector("#add-error:has-text('Too soon.')");
    await page.unroute("**/plants");
    await page.click("#add-button");
    await page.waitForSelector("text=“Acer” was added with the id 1.");
    expect(await harvest(service, token)).toEqual(["Acer"]);
  });

  test("even if another one is refused in between", async () => {
    const { token } = await makeGardener(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.route("**/plants", loseResponse);
    await page.click("#first-add");
    await page.fill("#add-name", "Acer");
    await page.click("#add-button");
    await page.waitForSelector("#add-error:has-text('did not respond')");
    await page.unroute("**/plants");
    await page.fill("#add-tag", "t".repeat(101));
    await page.click("#add-button");
    await page.waitForSelector("#add-tag[aria-invalid=true]");
    await page.fill("#add-tag", "");
    await page.click("#add-button");
    await page.waitForSelector("text=“Acer” was added with the id 1.");
    expect(await harvest(service, token)).toEqual(["Acer"]);
  });
});

describe.skipIf(isBrowserMissing)("a deletion", () => {
  test("whose response was lost is reported as uncertain when signing out", async () => {
    const { token } = await makeGardener(service);
    await sow(service, token, [{ name: "Acer" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.route("**/plants/1", loseResponse);
    await page.click("[aria-label='Delete Acer']");
    await page.click("#sign-out");
    await page.waitForSelector("text=Signed out. These plants may not have been deleted: “Acer”.");
    expect(await harvest(service, token)).toEqual([]);
  });

  test("waits while its message has the pointer or the focus", async () => {
    const { token } = await makeGardener(service);
    await sow(service, token, [{ name: "Acer" }, { name: "Betula" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.clock.install();
    await page.reload();
    await signIn(page, token);
    await page.click("[aria-label='Delete Acer']");
    await page.focus("#undo-button");
    await page.hover("#undo-text");
    await page.mouse.move(0, 0);
    await page.clock.fastForward(60_000);
    expect(await page.isVisible("#undo")).toBe(true);
    expect(await harvest(service, token)).toHaveLength(2);
    await page.focus("#filter");
    await page.clock.fastForward(6_000);
    await page.waitForSelector("text=“Acer” was deleted.");
    expect(await harvest(service, token)).toEqual(["Betula"]);
  });
});

test.skipIf(isBrowserMissing)("a new plant replaces a deleted one with the same id", async () => {
  const { token } = await makeGardener(service);
  await sow(service, token, [{ name: "Acer" }, { name: "Betula" }]);
  await using opened = await openGarden(service, token);
  const { page } = opened;
  await service.call("DELETE /plants/2", { token });
  await page.click("#open-add");
  await page.fill("#add-name", "Carex");
  await page.fill("#add-id", "2");
  await page.click("#add-button");
  await page.waitForSelector("text=“Carex” was added with the id 2.");
  expect(await shownNames(page)).toEqual(["Acer", "Carex"]);
  expect(await harvest(service, token)).toEqual(["Acer", "Carex"]);
});
