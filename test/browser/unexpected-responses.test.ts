/** The console when something other than the service responds, or a response comes too late. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RunningService, startService } from "../end-to-end/running-service.ts";
import { isBrowserMissing, watchPages } from "./browser.ts";
import { harvest, makeGardener, openGarden, shownNames, signIn, sow } from "./signed-in.ts";

watchPages();
let service: RunningService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.[Symbol.asyncDispose]());

/** From a proxy that wants people to sign in. */
const signInPage = { contentType: "text/html", body: "<html>Sign in</html>" };

describe.skipIf(isBrowserMissing)("a response from a proxy", () => {
  test("is not taken for an added plant", async () => {
    const { token } = await makeGardener(service);
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
    const { token } = await makeGardener(service);
    await sow(service, token, [{ name: "Acer" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.clock.install();
    await page.reload();
    await signIn(page, token);
    await page.route("**/plants/1", (route) => route.fulfill(signInPage));
    await page.click("[aria-label='Delete Acer']");
    await page.clock.fastForward(6_000);
    await page.waitForSelector("#notice.trouble:has-text('“Acer” may not have been deleted.')");
    expect(await shownNames(page)).toEqual(["Acer"]);
  });

  test.each([{ title: "Bad gateway" }, null, { type: "about:blank", detail: "Who are you?" }])(
    "is not taken for the service's own refusal: %j",
    async (problem) => {
      const { token } = await makeGardener(service);
      await using opened = await openGarden(service, token);
      const { page } = opened;
      const contentType = "application/problem+json";
      const answer = { status: 401, contentType, body: JSON.stringify(problem) };
      await page.route("**/plants", (route) => route.fulfill(answer));
      await page.click("#first-add");
      await page.fill("#add-name", "Acer");
      await page.click("#add-button");
      await page.waitForSelector(
        "#add-error:has-text('Something other than the service responded, with status 401.')",
      );
    },
  );
});

test.skipIf(isBrowserMissing)("a response that arrives after signing out is ignored", async () => {
  const { token } = await makeGardener(service);
  const next = await makeGardener(service);
  await using opened = await openGarden(service, token);
  const { page } = opened;
  await page.clock.install();
  await page.reload();
  await signIn(page, token);
  const problem = { type: "urn:plantstore:problem:rate-limited", detail: "Too soon." };
  const headers = { "Retry-After": "9", "Content-Type": "application/problem+json" };
  const answer = { status: 429, headers, body: JSON.stringify(problem) };
  await page.route("**/plants", (route) => route.fulfill(answer));
  await page.click("#first-add");
  await page.fill("#add-name", "Acer");
  const limited = page.waitForResponse("**/plants");
  await page.click("#add-button");
  await limited;
  await page.click("#sign-out");
  await page.waitForSelector("#sign-in:not([hidden])");
  await signIn(page, next.token);
  await page.unroute("**/plants");
  await page.click("#first-add");
  expect(await page.isEnabled("#add-button")).toBe(true);
  await page.clock.fastForward(10_000);
  await page.fill("#add-name", "Betula");
  expect(await page.textContent("#add-error")).toBe("");
  expect(await harvest(service, token)).toEqual([]);
});
