/** The console with a rate limit: it waits a little and tries again by itself. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RunningService, startService } from "../end-to-end/running-service.ts";
import { isBrowserMissing, watchPages } from "./browser.ts";
import { makeGardener, openGarden } from "./signed-in.ts";

watchPages();
let service: RunningService;
beforeAll(async () => {
  service = await startService({ args: ["--rate-limit", "1/5s"] });
});
afterAll(() => service?.[Symbol.asyncDispose]());

describe.skipIf(isBrowserMissing)("a garden with a rate limit", () => {
  test("stores a plant that came too soon, a little later", async () => {
    const { token } = await makeGardener(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.click("#first-add");
    await page.fill("#add-name", "Acer");
    // Whatever the response, the next request comes too soon.
    await service.call("GET /plants", { token });
    await page.click("#add-button");
    await page.waitForSelector("text=“Acer” was added");
    expect(await page.textContent("#garden-title")).toBe("1 plant");
    const refused = '"method":"POST","route":"/plants","status":429';
    expect(service.output().out).toContain(refused);
  });
});
