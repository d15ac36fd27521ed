/** What else a browser meets, under a base path: the API reference, and the client on a site. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { buildClientPackage } from "../../scripts/build-client.ts";
import { startService } from "../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { inspect, isBrowserMissing, openPage, watchPages } from "./browser.ts";
import { harvest, makeGarden, signIn } from "./signed-in.ts";

watchPages();
const service = await startService({ args: ["--threads", "1", "--base-path", "/garden/v1"] });
const folder = makeTemporaryFolder();
/** A site that uses the client's package. */
const site = Bun.serve({
  port: 0,
  routes: {
    "/": new Response("<!doctype html><title>A page</title><link rel=icon href='data:,'>", {
      headers: { "content-type": "text/html" },
    }),
    "/client/:file": ({ params }) => new Response(Bun.file(join(folder.path, params.file))),
  },
});
afterAll(async () => {
  await site.stop(true);
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** With the long page behind it, a panel takes half a minute to inspect. */
function removeAllAround(element: Element): void {
  for (let each = element; each.parentElement; each = each.parentElement) {
    for (const sibling of [...each.parentElement.children]) {
      if (sibling !== each && sibling !== document.head) sibling.remove();
    }
  }
}

describe.skipIf(isBrowserMissing)("beside the console", () => {
  test("the reference, in a tab of its own, sends requests from a readable panel, and deletes no plant until its id is typed", async () => {
    await using opened = await openPage(`${service.url}/`);
    await signIn(opened.page, service.token);
    const opening = opened.page.context().waitForEvent("page");
    await opened.page.click("text=API reference");
    const page = await opening;
    await page.waitForLoadState();
    expect(await page.evaluate(() => opener)).toBeNull();
    expect(await opened.page.isVisible("#garden-title")).toBe(true);

    await page.locator("input[placeholder='Token']:visible").first().fill(service.token);
    expect(await page.locator("text=headers only").count()).toBe(0);
    const panel = page.getByRole("dialog");
    const send = async (method: string) => {
      const answered = page.waitForResponse((response) => response.request().method() === method);
      await panel.locator("button:has-text('Send'):visible").first().click();
      return answered;
    };
    for (const id of [1, 7]) {
      const body = JSON.stringify({ name: "Acer", id });
      expect((await service.call("POST /plants", { body })).status).toBe(201);
    }
    await page.locator("text=Delete a plant").first().click();
    await page
      .locator("#api-1\\/tag\\/plants\\/DELETE\\/plants\\/\\{id\\} button:has-text('Test Request')")
      .click();
    expect((await send("DELETE")).status()).toBe(404);
    expect(await harvest(service, service.token)).toEqual(["Acer", "Acer"]);
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "hidden" });

    await page.locator("button:has-text('Test Request'):visible").first().click();
    await panel.locator("text=Request Body").waitFor();
    const response = await send("POST");
    expect([response.status(), response.url()]).toEqual([201, `${service.url}/plants`]);
    expect(await harvest(service, service.token)).toContain("Monstera deliciosa");
    const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
    expect(kept).not.toContain(service.token);

    await panel.locator("text=201").first().waitFor();
    await panel.evaluate(removeAllAround);
    // Nothing shows through the panel.
    for (const [colorScheme, color] of [
      ["light", "rgb(253, 251, 245)"],
      ["dark", "rgb(18, 23, 18)"],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      const seen = await panel.evaluate((element) => {
        const { backgroundColor, opacity } = getComputedStyle(element);
        return [backgroundColor, opacity];
      });
      expect(seen).toEqual([color, "1"]);
    }
    // On a phone it fits, too.
    await page.setViewportSize({ width: 390, height: 700 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    expect((await panel.boundingBox())?.width).toBeLessThanOrEqual(390);
    await inspect(page, "390-reference-panel", ["color-contrast", "button-name"]);
    await page.close();
  });

  test("a page on another origin can use all of the client", async () => {
    await buildClientPackage(folder.path);
    const token = await makeGarden(service);
    await using opened = await openPage(site.url.href);
    const module = "/client/plant-store.js";
    const seen = await opened.page.evaluate(
      async ({ url, token, module }) => {
        const { PlantStore, PlantStoreProblem } = (await import(
          module
        )) as typeof import("../../client/plant-store.ts");
        const seeStream = async (target: string, init: RequestInit) => {
          const response = await fetch(target, init);
          const type = response.headers.get("content-type");
          if (type === "text/event-stream") void store.create({ name: "Rose" });
          return response;
        };
        const store = new PlantStore({ url, token, fetch: seeStream });
        const created = await store.create({ name: "Fern", tag: "shade" });
        await store.createMany([
          { name: "Moss", id: 2n ** 53n + 1n },
          { name: "Ivy", tag: "shade" },
        ]);
        const shady = await Array.fromAsync(store.list({ tag: "shade" }), ({ name }) => name);
        // The etag is read, so the service exposes it, and a put with it is allowed.
        const { etag, ...moss } = await store.update(2n ** 53n + 1n, { tag: "wall" });
        const events = [];
        for await (const { seq, plant } of store.events({ after: 3 })) {
          // The first one is kept; the second one comes by a stream.
          if (events.push(`${seq} ${plant.name}`) === 2) break;
        }
        const { confirmed } = await store.delete(created.id);
        const failure = await store.get(created.id).catch((error) => error);
        return {
          id: String(created.id),
          shady,
          moss: { ...moss, id: String(moss.id) },
          hasEtag: etag !== "" && created.etag !== "",
          events,
          confirmed,
          isProblem: failure instanceof PlantStoreProblem,
          code: failure.code,
          scope: (await store.me()).scope,
        };
      },
      { url: service.url, token, module },
    );
    expect(seen).toEqual({
      id: "1",
      shady: ["Fern", "Ivy"],
      moss: { id: "9007199254740993", name: "Moss", tag: "wall" },
      hasEtag: true,
      events: ["4 Moss", "5 Rose"],
      confirmed: true,
      isProblem: true,
      code: "not-found",
      scope: "write",
    });
  });
});
