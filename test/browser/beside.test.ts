/** What else a browser meets, under a base path: the API reference, and the client on a site. */
import { expect } from "bun:test";
import { join } from "node:path";
import { buildClientPackage } from "../../scripts/build-client.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { inspect } from "./browser.ts";
import { useConsole } from "./signed-in.ts";

const testGarden = useConsole();

testGarden(
  "the reference, in a tab of its own, sends requests from a readable panel and keeps no token",
  {},
  async ({ page, service, token, stored }) => {
    const opening = page.context().waitForEvent("page");
    await page.click("text=API reference");
    const reference = await opening;
    await reference.waitForLoadState();
    expect(await reference.evaluate(() => opener)).toBeNull();
    await reference.locator("input[placeholder='Token']:visible").first().fill(token);
    await reference.locator("button:has-text('Test Request'):visible").first().click();
    const panel = reference.getByRole("dialog");
    await panel.locator("text=Request Body").waitFor();
    const answered = reference.waitForResponse((each) => each.request().method() === "POST");
    await panel.locator("button:has-text('Send'):visible").first().click();
    const response = await answered;
    expect([response.status(), response.url()]).toEqual([201, `${service.url}/plants`]);
    expect(await stored()).toEqual(["Monstera deliciosa"]);
    // The panel fills in examples, so whoever sends its DELETE unchanged must hit no plant.
    const { paths } = await (await service.call("GET /openapi.json")).json();
    expect(paths["/plants/{id}"].delete.parameters[0].example).toBe(9_000_000_000_000_000);
    const kept = await reference.evaluate(() =>
      JSON.stringify({ ...localStorage, ...sessionStorage }),
    );
    expect(kept).not.toContain(token);

    await panel.locator("text=201").first().waitFor();
    const background = await panel.evaluate((element) => getComputedStyle(element).backgroundColor);
    expect(background).toStartWith("rgb(");
    // With the long page behind it, a panel takes half a minute to inspect.
    await panel.evaluate((element) => {
      for (let each = element; each.parentElement; each = each.parentElement) {
        for (const sibling of [...each.parentElement.children]) {
          if (sibling !== each && sibling !== document.head) sibling.remove();
        }
      }
    });
    // On a phone it fits, too.
    await reference.setViewportSize({ width: 390, height: 700 });
    expect(await reference.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    expect((await panel.boundingBox())?.width).toBeLessThanOrEqual(390);
    await inspect(reference, "390-reference-panel", ["color-contrast", "button-name"]);
    await reference.close();
  },
);

testGarden(
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
