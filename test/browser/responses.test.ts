/** The console when responses are lost, come too late, or come from something else. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Route } from "playwright-core";
import { type RunningService, startService } from "../end-to-end/running-service.ts";
import { inspect, isBrowserMissing, watchPages } from "./browser.ts";
import { harvest, makeGarden, openGarden, shownNames, signIn } from "./signed-in.ts";

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

const problemType = "application/problem+json";

function limited(retryAfterSeconds: number) {
  return {
    status: 429,
    headers: { "Retry-After": String(retryAfterSeconds), "Content-Type": problemType },
    body: JSON.stringify({ type: "urn:plantstore:problem:rate-limited", detail: "Too soon." }),
  };
}

/** From a proxy that wants people to sign in. */
const signInPage = { contentType: "text/html", body: "<html>Sign in</html>" };

test.skipIf(isBrowserMissing)(
  "a plant that meets a rate limit is stored a little later",
  async () => {
    const token = await makeGarden(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.route("**/plants", (route) => route.fulfill(limited(1)), { times: 1 });
    await page.click("#first-add");
    await page.fill("#add-name", "Acer");
    await page.click("#add-button");
    await page.waitForSelector("text=“Acer” was added");
    expect(await page.textContent("#garden-title")).toBe("1 plant");
  },
);

describe.skipIf(isBrowserMissing)("a plant whose response was lost is stored once", () => {
  test("even if the next try meets a rate limit", async () => {
    const token = await makeGarden(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.route("**/plants", loseResponse);
    await page.click("#first-add");
    await page.fill("#add-name", "Acer");
    await page.click("#add-button");
    await page.waitForSelector("#add-error:has-text('did not respond')");
    await inspect(page, "unanswered");
    await page.unroute("**/plants");
    await page.route("**/plants", (route) => route.fulfill(limited(99)));
    await page.click("#add-button");
    await page.waitForSelector("#add-error:has-text('Too soon.')");
    await page.unroute("**/plants");
    await page.click("#add-button");
    await page.waitForSelector("text=“Acer” was added with the id 1.");
    expect(await harvest(service, token)).toEqual(["Acer"]);
  });

  test("even if another one is refused in between", async () => {
    const token = await makeGarden(service);
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
    const token = await makeGarden(service, [{ name: "Acer" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.route("**/plants/1", loseResponse);
    await page.click("[aria-label='Delete Acer']");
    await page.click("#sign-out");
    await page.waitForSelector("text=Signed out. These plants may not have been deleted: “Acer”.");
    expect(await harvest(service, token)).toEqual([]);
  });

  test("waits while its message has the pointer or the focus", async () => {
    const token = await makeGarden(service, [{ name: "Acer" }, { name: "Betula" }]);
    await using opened = await openGarden(service, token, { hasClock: true });
    const { page } = opened;
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
  const token = await makeGarden(service, [{ name: "Acer" }, { name: "Betula" }]);
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

test.skipIf(isBrowserMissing)(
  "a new plant with the id of one whose deletion could still be undone takes its place",
  async () => {
    const token = await makeGarden(service, [{ name: "Acer" }, { name: "Betula" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.click("[aria-label='Delete Betula']");
    await page.click("#open-add");
    await page.fill("#add-name", "Carex");
    await page.fill("#add-id", "2");
    await page.click("#add-button");
    await page.waitForSelector("text=“Carex” was added with the id 2.");
    expect(await page.isVisible("#undo")).toBe(false);
    expect(await shownNames(page)).toEqual(["Acer", "Carex"]);
    expect(await harvest(service, token)).toEqual(["Acer", "Carex"]);
  },
);

describe.skipIf(isBrowserMissing)("a response from a proxy", () => {
  test("is not taken for an added plant", async () => {
    const token = await makeGarden(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.route("**/plants", (route) => route.fulfill(signInPage));
    await page.click("#first-add");
    await page.fill("#add-name", "Acer");
    await page.click("#add-button");
    await page.waitForSelector(
      "#add-error:has-text('Something other than the service responded, with status 200.')",
    );
    expect(await page.inputValue("#add-name")).toBe("Acer");
    await page.unroute("**/plants");
    await page.click("#add-button");
    await page.waitForSelector("text=“Acer” was added with the id 1.");
    expect(await harvest(service, token)).toEqual(["Acer"]);
  });

  test("is not taken for a deletion", async () => {
    const token = await makeGarden(service, [{ name: "Acer" }]);
    await using opened = await openGarden(service, token, { hasClock: true });
    const { page } = opened;
    await page.route("**/plants/1", (route) => route.fulfill(signInPage));
    await page.click("[aria-label='Delete Acer']");
    await page.clock.fastForward(6_000);
    await page.waitForSelector("#notice.trouble:has-text('“Acer” may not have been deleted.')");
    expect(await shownNames(page)).toEqual(["Acer"]);
  });

  test("is not taken for the service's own refusal", async () => {
    const token = await makeGarden(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    const body = JSON.stringify({ type: "about:blank", detail: "Who are you?" });
    const answer = { status: 401, contentType: problemType, body };
    await page.route("**/plants", (route) => route.fulfill(answer));
    await page.click("#first-add");
    await page.fill("#add-name", "Acer");
    await page.click("#add-button");
    await page.waitForSelector(
      "#add-error:has-text('Something other than the service responded, with status 401.')",
    );
  });
});

test.skipIf(isBrowserMissing)("a response that arrives after signing out is ignored", async () => {
  const token = await makeGarden(service);
  const next = await makeGarden(service);
  await using opened = await openGarden(service, token, { hasClock: true });
  const { page } = opened;
  await page.route("**/plants", (route) => route.fulfill(limited(9)));
  await page.click("#first-add");
  await page.fill("#add-name", "Acer");
  const refused = page.waitForResponse("**/plants");
  await page.click("#add-button");
  await refused;
  await page.click("#sign-out");
  await page.waitForSelector("#sign-in:not([hidden])");
  await signIn(page, next);
  await page.unroute("**/plants");
  await page.click("#first-add");
  expect(await page.isEnabled("#add-button")).toBe(true);
  await page.clock.fastForward(10_000);
  await page.fill("#add-name", "Betula");
  expect(await page.textContent("#add-error")).toBe("");
  expect(await harvest(service, token)).toEqual([]);
});
