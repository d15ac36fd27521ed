/** The client's package in a real browser, on a page of another origin than the service. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { buildClientPackage } from "../../scripts/build-client.ts";
import { type RunningService, startService } from "../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { isBrowserMissing, openPage, watchPages } from "./browser.ts";
import { makeGarden } from "./signed-in.ts";

watchPages();
const folder = makeTemporaryFolder();
let service: RunningService;
let site: Bun.Server<undefined>;

beforeAll(async () => {
  await buildClientPackage(folder.path);
  service = await startService();
  site = Bun.serve({
    port: 0,
    routes: {
      "/": new Response("<!doctype html><title>A page</title><link rel=icon href='data:,'>", {
        headers: { "content-type": "text/html" },
      }),
      // Where a page goes after the test, and what a browser asks for there.
      "/healthz": new Response("ok"),
      "/favicon.ico": new Response(null, { status: 204 }),
      "/client/:file": ({ params }) => new Response(Bun.file(join(folder.path, params.file))),
    },
  });
});
afterAll(async () => {
  await site.stop(true);
  await service?.[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

test.skipIf(isBrowserMissing)("a page on another origin can use all of the client", async () => {
  const token = await makeGarden(service);
  await using opened = await openPage(site.url.href, {}, [service.url]);
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
