/** Adding and deleting in the console, in a real browser, also when responses are lost or late. */
import { afterAll, describe, expect, test } from "bun:test";
import type { Route } from "playwright-core";
import { startService } from "../end-to-end/running-service.ts";
import { inspect, isBrowserMissing, watchPages } from "./browser.ts";
import { harvest, makeGarden, openGarden, shownNames, signIn, somePlants } from "./signed-in.ts";

watchPages();
const service = await startService();
afterAll(() => service[Symbol.asyncDispose]());

/** The service gets the request; the page never sees the response. */
async function loseResponse(route: Route): Promise<void> {
  await route.fetch();
  await route.abort();
}

function limited(retryAfterSeconds: number) {
  return {
    status: 429,
    headers: {
      "Retry-After": String(retryAfterSeconds),
      "Content-Type": "application/problem+json",
    },
    body: JSON.stringify({ type: "urn:plantstore:problem:rate-limited", detail: "Too soon." }),
  };
}

describe.skipIf(isBrowserMissing)("adding a plant", () => {
  test("works from an empty garden, with and without an id, with every digit kept", async () => {
    const token = await makeGarden(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.waitForSelector("#empty:not([hidden])");
    await inspect(page, "empty");
    await page.click("#first-add");
    await page.fill("#add-name", "Monstera deliciosa");
    await page.fill("#add-tag", "living room");
    await page.click("#add-button");
    await page.waitForSelector("#rows .row");
    expect(await page.textContent("#notice-text")).toBe(
      "“Monstera deliciosa” was added with the id 1.",
    );
    await page.fill("#add-name", "Sequoia");
    await page.fill("#add-id", "9007199254740993");
    await page.click("#add-button");
    await page.waitForSelector("text=9007199254740993");
    await page.fill("#add-name", "Welwitschia");
    await page.fill("#add-id", "-9223372036854775808");
    await page.click("#add-button");
    await page.waitForSelector("[aria-label='Delete Welwitschia']");
    expect(await shownNames(page)).toEqual(["Welwitschia", "Monstera deliciosa", "Sequoia"]);
    expect(await page.textContent("#garden-title")).toBe("3 plants");
    expect(await harvest(service, token)).toEqual(await shownNames(page));
  });

  test("shows each error at its field, until it is corrected", async () => {
    const token = await makeGarden(service, somePlants);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.click("#open-add");
    await page.fill("#add-tag", "t".repeat(101));
    await page.fill("#add-id", "7x");
    await page.click("#add-button");
    expect(await page.textContent("#add-id-error")).toBe("Must be a whole number, or empty.");
    await page.fill("#add-id", "9223372036854775808");
    await page.click("#add-button");
    await page.waitForSelector("#add-name[aria-invalid=true]");
    for (const field of ["name", "tag", "id"]) {
      expect(await page.getAttribute(`#add-${field}`, "aria-invalid")).toBe("true");
      expect(await page.textContent(`#add-${field}-error`)).toMatch(/^Must .+\.$/);
    }
    expect(await page.evaluate(() => document.activeElement?.id)).toBe("add-name");
    await inspect(page, "errors");
    await page.fill("#add-name", "Calathea orbifolia");
    expect(await page.textContent("#add-name-error")).toBe("");
    expect(await page.getAttribute("#add-name", "aria-invalid")).toBe("false");
    expect(await page.getAttribute("#add-tag", "aria-invalid")).toBe("true");
    await page.fill("#add-tag", "bathroom");
    await page.fill("#add-id", "3");
    await page.click("#add-button");
    await page.waitForFunction(() => document.getElementById("add-id-error")?.textContent !== "");
    expect(await page.textContent("#add-name-error")).toBe("");
    expect(await page.getAttribute("#add-id", "aria-invalid")).toBe("true");
    expect(await page.inputValue("#add-name")).toBe("Calathea orbifolia");
  });
});

test.skipIf(isBrowserMissing)(
  "a name is shown as it is: never as HTML, and without reordering what is around it",
  async () => {
    const html = "<img src=x onerror=alert(1)>";
    const token = await makeGarden(service, [
      { name: html, tag: "<b>bold</b>" },
      { name: "שושנה (2", tag: "גן" },
    ]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    expect(await shownNames(page)).toEqual([html, "שושנה (2"]);
    expect(await page.locator(".chip bdi").allTextContents()).toContain("<b>bold</b>");
    expect(await page.locator("#garden img, #garden b").count()).toBe(0);
    for (const place of ["#rows .name", "#rows .tag"]) {
      expect(await page.locator(`${place} bdi`).count()).toBe(2);
    }
    await page.click("[aria-label^='Delete ש']");
    expect(await page.textContent("#undo-text bdi")).toBe("שושנה (2");
  },
);

describe.skipIf(isBrowserMissing)("deleting a plant", () => {
  test("can be undone, and sends nothing before the time is up", async () => {
    const token = await makeGarden(service, somePlants);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    const deletions: string[] = [];
    page.on("request", (each) => each.method() === "DELETE" && deletions.push(each.url()));
    await page.click("[aria-label='Delete Olea europaea']");
    await page.click("[aria-label='Delete Aloë vera']");
    // The clock stops for anyone about to press the button.
    await page.hover("#undo");
    expect(await page.textContent("#undo-text")).toContain("“Olea europaea” and 1 more");
    expect(await shownNames(page)).toHaveLength(10);
    await inspect(page, "deleting");
    await page.click("#undo-button");
    expect(await shownNames(page)).toEqual(somePlants.map(({ name }) => name));
    expect(await page.isVisible("#undo")).toBe(false);
    expect(deletions).toEqual([]);
    expect(await harvest(service, token)).toHaveLength(12);
  });

  test("happens when the time is up, but not if the page is left before", async () => {
    const token = await makeGarden(service, somePlants.slice(0, 3));
    await using opened = await openGarden(service, token, { hasClock: true });
    const { page } = opened;
    await page.click("[aria-label='Delete Ficus lyrata']");
    await page.reload();
    await signIn(page, token);
    await page.click("[aria-label='Delete Monstera deliciosa']");
    await page.clock.fastForward(6_000);
    await page.waitForSelector("#notice:not([hidden])");
    expect(await page.textContent("#notice-text")).toBe("“Monstera deliciosa” was deleted.");
    expect(await harvest(service, token)).toEqual(["Ficus lyrata", "Dryopteris filix-mas"]);
  });

  test("is never sent to the garden of whoever signs in next", async () => {
    const token = await makeGarden(service, somePlants.slice(0, 2));
    const next = await makeGarden(service, somePlants.slice(0, 2));
    await using opened = await openGarden(service, token, { hasClock: true });
    const { page } = opened;
    await page.route("**/plants/1", (route) => route.fulfill(limited(9)));
    await page.click("[aria-label='Delete Monstera deliciosa']");
    await page.click("[aria-label='Delete Ficus lyrata']");
    const refused = page.waitForResponse("**/plants/1");
    await page.click("#sign-out");
    await refused;
    await page.clock.fastForward(5_000);
    await page.waitForSelector("#sign-in:not([hidden])");
    await signIn(page, next);
    await page.clock.fastForward(5_000);
    await page.click("[aria-label='Delete Ficus lyrata']");
    await page.click("#undo-button");
    for (const each of [token, next]) expect(await harvest(service, each)).toHaveLength(2);
  });

  test("shows the plant again if there was no response, but not if it was already gone", async () => {
    const token = await makeGarden(service, somePlants.slice(0, 2));
    await using opened = await openGarden(service, token, { hasClock: true });
    const { page } = opened;
    await page.route("**/plants/1", (route) => route.abort());
    await page.click("[aria-label='Delete Monstera deliciosa']");
    await page.clock.fastForward(6_000);
    await page.waitForSelector("#notice.trouble:not([hidden])");
    expect(await shownNames(page)).toEqual(["Monstera deliciosa", "Ficus lyrata"]);
    await service.call("DELETE /plants/2", { token });
    await page.click("[aria-label='Delete Ficus lyrata']");
    await page.clock.fastForward(6_000);
    await page.waitForSelector("text=“Ficus lyrata” had already been deleted.");
    expect(await shownNames(page)).toEqual(["Monstera deliciosa"]);
  });

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
});

test.skipIf(isBrowserMissing)(
  "a plant whose response was lost is stored once, whatever happens before the next try",
  async () => {
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
    await page.route("**/plants", (route) => route.fulfill(limited(99)));
    await page.click("#add-button");
    await page.waitForSelector("#add-error:has-text('Too soon.')");
    await page.unroute("**/plants");
    await page.click("#add-button");
    await page.waitForSelector("text=“Acer” was added with the id 1.");
    expect(await harvest(service, token)).toEqual(["Acer"]);
  },
);

test.skipIf(isBrowserMissing)(
  "a response from a proxy is not taken for an added plant",
  async () => {
    const token = await makeGarden(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.route("**/plants", (route) =>
      route.fulfill({ contentType: "text/html", body: "<html>Sign in</html>" }),
    );
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
  },
);

test.skipIf(isBrowserMissing)("a read-only token is offered no changes", async () => {
  const access = {
    scope: "read",
    garden: "roses",
    expiresAtMs: Date.UTC(2099, 11, 31, 12),
  } as const;
  const token = await makeGarden(service, [], access);
  await using opened = await openGarden(service, token);
  const { page } = opened;
  expect(await page.textContent("#me")).toMatch(
    /^garden-\d+ · garden roses · read only · expires December 31, 2099 at /,
  );
  await page.waitForSelector("#empty:has-text('this token can only read')");
  expect(await page.locator("#garden button:visible").allTextContents()).toEqual(["Refresh"]);
  await makeGarden(service, somePlants, { garden: "roses" });
  await page.reload();
  await signIn(page, token);
  expect(await page.locator(".writing:visible, [aria-label^=Delete]").count()).toBe(0);
  await page.keyboard.press("n");
  expect(await page.isVisible("#add")).toBe(false);
  expect(await page.isVisible("#export")).toBe(true);
  await inspect(page, "read-only");
  await page.click(".opener");
  expect(await page.isVisible("#copy-name")).toBe(true);
  expect(await page.isVisible("#plant-edit")).toBe(false);
});
