/** Changing a garden in the console, in a real browser: adding, errors, deleting, undoing. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RunningService, startService, waitFor } from "../end-to-end/running-service.ts";
import { inspect, isBrowserMissing, takePicture, watchPages } from "./browser.ts";
import { harvest, makeGarden, openGarden, shownNames, signIn, somePlants } from "./signed-in.ts";

watchPages();
let service: RunningService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service?.[Symbol.asyncDispose]());

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
    await takePicture(page, "long-ids");
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
    await takePicture(page, "id-taken");
  });

  test("shows names as they are, and never as HTML", async () => {
    const name = "<img src=x onerror=alert(1)>";
    const token = await makeGarden(service, [{ name, tag: "<b>bold</b>" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.waitForSelector("#rows .row");
    expect(await shownNames(page)).toEqual([name]);
    expect(await page.textContent(".chip bdi")).toBe("<b>bold</b>");
    expect(await page.locator("#garden img, #garden b").count()).toBe(0);
  });

  test("keeps a name written right to left from reordering what is around it", async () => {
    const name = "שושנה (2";
    const token = await makeGarden(service, [{ name, tag: "גן" }]);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    for (const place of ["#rows .name", "#rows .tag", ".chip"]) {
      expect(await page.locator(`${place} bdi`).count()).toBe(1);
    }
    await page.click("#rows .action button");
    expect(await page.textContent("#undo-text bdi")).toBe(name);
    await inspect(page, "right-to-left");
  });
});

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

  test("is sent at once when signing out", async () => {
    const token = await makeGarden(service, somePlants.slice(0, 2));
    await using opened = await openGarden(service, token);
    await opened.page.click("[aria-label='Delete Ficus lyrata']");
    await opened.page.click("#sign-out");
    await opened.page.waitForSelector("#token");
    await waitFor(async () => ((await harvest(service, token)).length === 1 ? true : undefined));
    expect(await opened.page.isVisible("#sign-in-reason")).toBe(false);
  });

  test("is reported as uncertain for plants after one whose token was refused", async () => {
    const token = await makeGarden(service, somePlants.slice(0, 2));
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.route("**/plants/1", (route) => route.fulfill(refusal(401)));
    await page.click("[aria-label='Delete Monstera deliciosa']");
    await page.click("[aria-label='Delete Ficus lyrata']");
    await page.click("#sign-out");
    await page.waitForSelector("#sign-in-reason:has-text('“Monstera deliciosa”, “Ficus lyrata”')");
    expect(await page.isVisible("#notice")).toBe(false);
    expect(await harvest(service, token)).toHaveLength(2);
  });

  test("that is under way finishes before signing out", async () => {
    const token = await makeGarden(service, somePlants.slice(0, 2));
    await using opened = await openGarden(service, token, { hasClock: true });
    const { page } = opened;
    const held = Promise.withResolvers<void>();
    await page.route("**/plants/1", async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.click("[aria-label='Delete Monstera deliciosa']");
    await page.click("[aria-label='Delete Ficus lyrata']");
    const begun = page.waitForRequest("**/plants/1");
    await page.clock.fastForward(6_000);
    await begun;
    await page.click("#sign-out");
    held.resolve();
    await page.waitForSelector("#sign-in:not([hidden])");
    expect(await harvest(service, token)).toEqual([]);
  });

  test("is never sent to the garden of whoever signs in next", async () => {
    const token = await makeGarden(service, somePlants.slice(0, 2));
    const next = await makeGarden(service, somePlants.slice(0, 2));
    await using opened = await openGarden(service, token, { hasClock: true });
    const { page } = opened;
    await page.route("**/plants/1", (route) => route.fulfill(refusal(429, { "Retry-After": "9" })));
    await page.click("[aria-label='Delete Monstera deliciosa']");
    await page.click("[aria-label='Delete Ficus lyrata']");
    const limited = page.waitForResponse("**/plants/1");
    await page.click("#sign-out");
    await limited;
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
    await inspect(page, "not-deleted");
    await service.call("DELETE /plants/2", { token });
    await page.click("[aria-label='Delete Ficus lyrata']");
    await page.clock.fastForward(6_000);
    await page.waitForSelector("text=“Ficus lyrata” had already been deleted.");
    expect(await shownNames(page)).toEqual(["Monstera deliciosa"]);
  });
});

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

function refusal(status: 401 | 429, headers: Record<string, string> = {}) {
  const code = status === 401 ? "unauthenticated" : "rate-limited";
  const body = JSON.stringify({ type: `urn:plantstore:problem:${code}`, detail: "Refused." });
  return { status, headers: { ...headers, "Content-Type": "application/problem+json" }, body };
}
