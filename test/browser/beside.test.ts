/** The API reference, and the client on another site, in a browser and under a base path. */
import { expect } from "bun:test";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { buildClientPackage } from "../../scripts/build-client.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { expectAccessible } from "./browser.ts";
import { signIn, signOut, useConsole } from "./signed-in.ts";

/** Its tests also fail if the page logs errors, calls other hosts or violates its policy. */
const testPage = useConsole();

/** Opens the reference from the console, and returns its tab. */
async function openReference(page: Page): Promise<Page> {
  const opening = page.context().waitForEvent("page");
  await page.click("text=API reference");
  const reference = await opening;
  await reference.waitForSelector(".opblock");
  return reference;
}

/** Opens an operation and sends its request: the example, or what `fill` makes of it. */
async function send(reference: Page, operationId: string, fill?: (form: Locator) => Promise<void>) {
  const form = reference.locator(`[id^=operations-][id$=-${operationId}]`);
  await form.locator(".opblock-summary-control").click();
  await fill?.(form);
  const responding = reference.waitForResponse(
    (response) => response.request().resourceType() === "fetch",
  );
  await form.locator(".execute").click();
  await form.locator(".live-responses-table").waitFor();
  return { form, response: await responding };
}

testPage(
  "the reference, opened from the console, sends its examples with the console's token",
  {},
  async ({ page, service, storedNames }) => {
    const reference = await openReference(page);
    await reference.waitForSelector(".authorize.locked");

    const created = await send(reference, "createPlant");
    expect(created.response.status()).toBe(201);
    expect(await storedNames()).toEqual(["Monstera deliciosa"]);

    // No optional parameter is set: the list has the plant.
    const listed = await send(reference, "listPlants");
    expect(listed.response.url()).toBe(`${service.url}/plants`);
    expect(await listed.response.json()).toEqual([
      { name: "Monstera deliciosa", tag: "living room" },
    ]);

    await reference.click(".models-control");
    await expectAccessible(reference, "reference-sent");
    await reference.close();
  },
);

testPage(
  "the reference keeps its token out of storage, and loses it when the console signs out",
  { isSignedIn: false },
  async ({ page, token }) => {
    await page.check("#keep-token");
    await signIn(page, token);
    const reference = await openReference(page);
    await reference.waitForSelector(".authorize.locked");
    expect(await reference.evaluate(() => sessionStorage.length)).toBe(0);
    expect(await reference.evaluate(() => localStorage.length)).toBe(0);

    await signOut(page);
    await reference.evaluate(() => dispatchEvent(new Event("focus")));
    await reference.waitForSelector(".authorize.unlocked");
    const { response } = await send(reference, "getMe");
    expect(response.status()).toBe(401);
    await reference.close();
  },
);

/** Fails unless all of it is in a window with a height of 700 pixels. */
async function expectInView(part: Locator): Promise<void> {
  const box = await part.boundingBox();
  if (!box) throw new Error("It isn't shown.");
  expect(box.y).toBeGreaterThanOrEqual(0);
  expect(box.y + box.height).toBeLessThanOrEqual(700);
}

testPage(
  "on a phone, the reference scrolls to the response, which has every digit of an id",
  { viewport: { width: 390, height: 700 }, hasTouch: true, isMobile: true },
  async ({ page, service, token }) => {
    await page.goto(`${service.url}/docs`);
    await page.click(".btn.authorize");
    await page.fill("#auth-bearer-value", token);
    await expectAccessible(page, "390-reference-token");
    await page.click(".modal-btn.authorize");
    await page.click(".btn-done");

    const { form } = await send(page, "createPlant", async (form) => {
      await form.locator("textarea").fill('{"name": "Fern", "id": 9007199254740993}');
      await form.getByLabel("include").selectOption("id");
    });

    const body = form.locator(".live-responses-table pre").first();
    await body.filter({ hasText: '"id": 9007199254740993' }).waitFor();
    await expectInView(body);
    await expectInView(form.locator(".live-responses-table .response-col_status").last());
    expect(await form.getByRole("status").textContent()).toBe("Response: 201");
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    await expectAccessible(page, "390-reference-response");
  },
);

testPage(
  "a page on another origin can use all of the client",
  { isSignedIn: false },
  async ({ page, service, token }) => {
    using folder = makeTemporaryFolder();
    await buildClientPackage(folder.path);
    using site = Bun.serve({
      port: 0,
      routes: {
        "/": new Response("<!doctype html><title>A page</title><link rel=icon href='data:,'>", {
          headers: { "content-type": "text/html" },
        }),
        "/client/:file": ({ params }) => new Response(Bun.file(join(folder.path, params.file))),
      },
    });
    await page.goto(site.url.href);

    const seen = await page.evaluate(
      async ({ url, token, module }) => {
        const { PlantStore }: typeof import("../../client/plant-store.ts") = await import(module);
        const store = new PlantStore({ url, token });
        const fern = await store.create({ name: "Fern", tag: "shade" });
        await store.createMany([{ name: "Moss" }, { name: "Ivy", tag: "shade" }]);
        // The etag can be read, and sent.
        const moss = await store.put(2, { name: "Moss", tag: "wall" });
        const { tag } = await store.update(2, { tag: "porch" }, { ifMatch: moss.etag });
        const events = [];
        for await (const { seq, plant } of store.events({ after: 4 })) {
          // The first one is kept; the second one comes by a stream.
          if (events.push(`${seq} ${plant.name}`) === 2) break;
          await store.create({ name: "Rose" });
        }
        const { confirmed } = await store.delete(fern.id);
        const names = await Array.fromAsync(store.list({ pageSize: 1 }), ({ name }) => name);
        const { code } = await store.get(fern.id).catch((error) => error);
        return { tag, events, confirmed, names, code };
      },
      { url: service.url, token, module: "/client/plant-store.js" },
    );

    expect(seen).toEqual({
      tag: "porch",
      events: ["5 Moss", "6 Rose"],
      confirmed: true,
      names: ["Moss", "Ivy", "Rose"],
      code: "not-found",
    });
  },
);
