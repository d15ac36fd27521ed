/** Changing a garden in the console: adding, deleting, undoing, and responses that go astray. */
import { describe, expect } from "bun:test";
import type { Page, Route } from "playwright-core";
import { inspect, takePicture } from "./browser.ts";
import {
  deletePlants,
  makeGarden,
  openCard,
  setHidden,
  shownNames,
  signIn,
  somePlants,
  useConsole,
  waitForTitle,
} from "./signed-in.ts";

const testGarden = useConsole();

/** The service gets the request; the page never sees the response. */
async function loseResponse(route: Route): Promise<void> {
  await route.fetch();
  await route.abort();
}

function refusal(status: 401 | 429, type: string, retryAfterSeconds = 0) {
  const contentType = { "Content-Type": "application/problem+json" };
  const body = JSON.stringify({ type, detail: "Too soon." });
  return { status, headers: { ...contentType, "Retry-After": String(retryAfterSeconds) }, body };
}
const limited = (seconds: number) => refusal(429, "urn:plantstore:problem:rate-limited", seconds);

/** From a proxy that wants people to sign in. */
const signInPage = { contentType: "text/html", body: "<html>Sign in</html>" };

async function add(page: Page, name: string, id = ""): Promise<void> {
  await page.fill("#add-name", name);
  await page.fill("#add-id", id);
  await page.click("#add-button");
}

describe("adding a plant", () => {
  testGarden(
    "works from an empty garden, with and without an id, with every digit kept",
    {},
    async ({ page, stored }) => {
      await page.waitForSelector("#empty:not([hidden])");
      await inspect(page, "empty");
      await page.click("#first-add");
      await page.fill("#add-tag", "living room");
      await add(page, "Monstera deliciosa");
      await page.waitForSelector("#rows .row");
      expect(await page.textContent("#notice-text")).toBe(
        "“Monstera deliciosa” was added with the id 1.",
      );
      await add(page, "Sequoia", "9007199254740993");
      await page.waitForSelector("text=9007199254740993");
      await add(page, "Welwitschia", "-9223372036854775808");
      await page.waitForSelector(".row:has-text('Welwitschia')");
      expect(await shownNames(page)).toEqual(["Welwitschia", "Monstera deliciosa", "Sequoia"]);
      await waitForTitle(page, "3 plants");
      await takePicture(page, "long-ids");
      expect(await stored()).toEqual(await shownNames(page));
    },
  );

  testGarden(
    "shows each error at its field, until it is corrected",
    { plants: somePlants },
    async ({ page }) => {
      await page.click("#open-add");
      await page.fill("#add-tag", "t".repeat(101));
      await add(page, "", "7x");
      expect(await page.textContent("#add-id-error")).toBe("Must be a whole number, or empty.");
      await add(page, "", "9223372036854775808");
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
      await add(page, "Calathea orbifolia", "3");
      await page.waitForFunction(() => document.getElementById("add-id-error")?.textContent !== "");
      expect(await page.textContent("#add-name-error")).toBe("");
      expect(await page.getAttribute("#add-id", "aria-invalid")).toBe("true");
      expect(await page.inputValue("#add-name")).toBe("Calathea orbifolia");
      await takePicture(page, "id-taken");
    },
  );

  const rightToLeft = { name: "שושנה (2", tag: "גן" };
  const markup = { name: "<img src=x onerror=alert(1)>", tag: "<b>bold</b>" };

  testGarden(
    "shows names as they are: never as HTML, and never reordering what is around them",
    { plants: [rightToLeft, markup] },
    async ({ page }) => {
      await page.waitForSelector("#rows .row");
      expect(await shownNames(page)).toEqual([rightToLeft.name, markup.name]);
      expect((await page.locator(".chip bdi").allTextContents()).toSorted()).toEqual(
        [rightToLeft.tag, markup.tag].toSorted(),
      );
      expect(await page.locator("#garden img, #garden b").count()).toBe(0);
      for (const place of ["#rows .name", "#rows .tag", ".chip"]) {
        expect(await page.locator(`${place} bdi`).count()).toBe(2);
      }
      await openCard(page, rightToLeft.name);
      await page.click("#plant-delete");
      await page.waitForSelector("#undo:visible");
      expect(await page.textContent("#undo-text bdi")).toBe(rightToLeft.name);
      await takePicture(page, "right-to-left");
    },
  );

  testGarden(
    "stores it once, however many responses are lost, refused, or not the service's",
    {},
    async ({ page, stored }) => {
      const addError = (text: string) => page.waitForSelector(`#add-error:has-text('${text}')`);
      await page.click("#first-add");
      await page.route("**/plants", loseResponse);
      await add(page, "Acer");
      await addError("did not respond");
      await takePicture(page, "unanswered");
      for (const [response, error] of [
        [limited(99), "Too soon."],
        [signInPage, "Something other than the service responded, with status 200."],
        [
          refusal(401, "about:blank"),
          "Something other than the service responded, with status 401.",
        ],
      ] as const) {
        await page.unroute("**/plants");
        await page.route("**/plants", (route) => route.fulfill(response));
        await page.click("#add-button");
        await addError(error);
        expect(await page.inputValue("#add-name")).toBe("Acer");
      }
      await page.unroute("**/plants");
      await page.fill("#add-tag", "t".repeat(101));
      await page.click("#add-button");
      await page.waitForSelector("#add-tag[aria-invalid=true]");
      await page.fill("#add-tag", "");
      // It waits for as long as a rate limit says, if that is short.
      await page.route("**/plants", (route) => route.fulfill(limited(1)), { times: 1 });
      await page.click("#add-button");
      await page.waitForSelector("#notice:has-text('“Acer” was added with the id 1.')");
      expect(await stored()).toEqual(["Acer"]);
    },
  );
});

describe("deleting a plant", () => {
  testGarden(
    "is done at once, and undone with the same id, step by step, until it is dismissed",
    { plants: somePlants },
    async ({ page, stored }) => {
      const names = somePlants.map(({ name }) => name);
      await deletePlants(page, "Olea europaea", "Aloë vera");
      expect(await stored()).toHaveLength(10);
      expect(await page.textContent("#undo-text")).toBe("“Aloë vera” was deleted.");
      await inspect(page, "deleting");
      await page.click("#undo-button");
      await page.waitForSelector("#notice:has-text('“Aloë vera” is back.')");
      expect(await page.textContent("#undo-text")).toBe("“Olea europaea” was deleted.");
      await page.click("#undo-button");
      await page.waitForSelector("#undo", { state: "hidden" });
      expect(await shownNames(page)).toEqual(names);
      expect(await stored()).toEqual(names);

      await deletePlants(page, "Ficus lyrata");
      await page.click("#undo-close");
      expect(await page.isVisible("#undo")).toBe(false);
      await page.keyboard.press("z");
      expect(await stored()).toHaveLength(11);
    },
  );

  testGarden(
    "shows what somebody else has made of it, and leaves it to the focused button to keep that",
    { plants: [{ name: "Fern", tag: "hall" }, { name: "Ivy" }] },
    async ({ page, call, stored }) => {
      const rename = (name: string) => call("PUT /plants/1", JSON.stringify({ name }));
      await setHidden(page, true);
      await openCard(page, "Fern");
      await rename("Royal fern");
      await page.click("#plant-delete");
      await page.waitForSelector("#plant-note:has-text('It was “Fern”, tagged “hall”.')");
      expect(await page.textContent("#plant-title")).toBe("Royal fern");
      await takePicture(page, "delete-conflict");
      await page.keyboard.press("Enter");
      await page.waitForSelector("#plant", { state: "hidden" });
      expect(await stored()).toEqual(["Royal fern", "Ivy"]);
      expect(await shownNames(page)).toEqual(["Royal fern", "Ivy"]);
      // The list is old, too.
      await rename("Tree fern");
      await page.focus(".opener:has-text('Royal')");
      await page.keyboard.press("Delete");
      await page.waitForSelector("#plant-title:has-text('Tree fern')");
      // Changed after the page looked again: only the service can notice.
      await page.route("**/plants/1", async (route) => {
        if (route.request().method() === "DELETE") await rename("Last fern");
        await route.continue();
      });
      await page.click("#plant-delete:text-is('Delete it anyway')");
      await page.waitForSelector("#plant-title:has-text('Last fern')");
      expect(await stored()).toEqual(["Last fern", "Ivy"]);
      await page.unroute("**/plants/1");
      await page.click("#plant-delete:text-is('Delete it anyway')");
      await page.waitForSelector("#undo:has-text('“Last fern” was deleted.')");
      expect(await stored()).toEqual(["Ivy"]);
    },
  );
});

const readAccess = {
  scope: "read",
  garden: "roses",
  expiresAtMs: Date.UTC(2099, 11, 31, 12),
} as const;

testGarden(
  "a read-only token is offered no changes",
  { access: readAccess },
  async ({ page, token, service }) => {
    expect(await page.textContent("#me")).toMatch(
      /^garden-\d+ · garden roses · read only · expires December 31, 2099 at /,
    );
    await page.waitForSelector("#empty:has-text('this token can only read')");
    const buttons = page.locator("#garden button:visible");
    expect(await buttons.allTextContents()).toEqual(["Refresh", "Activity"]);
    await makeGarden(service, somePlants, { garden: "roses" });
    await page.reload();
    await signIn(page, token);
    expect(await page.locator(".writing:visible").count()).toBe(0);
    for (const key of ["n", "x"]) await page.keyboard.press(key);
    expect(await page.isVisible("#add")).toBe(false);
    expect(await page.isVisible("#selection")).toBe(false);
    expect(await page.isVisible("#export")).toBe(true);
    await takePicture(page, "read-only");
    await page.focus(".opener");
    await page.keyboard.press("Delete");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#copy-name:visible");
    expect(await page.locator("#plant .writing:visible").count()).toBe(0);
  },
);
