/** The client in a browser, on a page of another site than the service's. */
import { expect } from "bun:test";
import { join } from "node:path";
import { buildClientPackage } from "../../scripts/build-client.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { useConsole } from "./signed-in.ts";

/** Its tests also fail if the page logs errors, calls other hosts or violates its policy. */
const testPage = useConsole();

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
