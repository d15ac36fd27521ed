/** Changing a garden in the console: adding, deleting, undoing, and responses that go astray. */
import { describe, expect } from "bun:test";
import type { Page, Route } from "playwright-core";
import { inspect, takePicture } from "./browser.ts";
import {
  deletePlants,
  harvest,
  makeGarden,
  shownNames,
  signIn,
  signOut,
  somePlants,
  useConsole,
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
const unauthenticated = refusal(401, "urn:plantstore:problem:unauthenticated");
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
      await page.waitForSelector("[aria-label='Delete Welwitschia']");
      expect(await shownNames(page)).toEqual(["Welwitschia", "Monstera deliciosa", "Sequoia"]);
      expect(await page.textContent("#garden-title")).toBe("3 plants");
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
      await page.click("#rows .action button");
      expect(await page.textContent("#undo-text bdi")).toBe(rightToLeft.name);
      await inspect(page, "right-to-left");
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
      await inspect(page, "unanswered");
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
      await page.waitForSelector("text=“Acer” was added with the id 1.");
      expect(await stored()).toEqual(["Acer"]);
    },
  );

  testGarden(
    "may give it the id of one that was deleted, or whose deletion could still be undone",
    { plants: [{ name: "Acer" }, { name: "Betula" }] },
    async ({ page, call, stored }) => {
      await page.click("#open-add");
      await call("DELETE /plants/2");
      await add(page, "Carex", "2");
      await page.waitForSelector("text=“Carex” was added with the id 2.");
      expect(await shownNames(page)).toEqual(["Acer", "Carex"]);
      await deletePlants(page, "Carex");
      await add(page, "Dahlia", "2");
      await page.waitForSelector("text=“Dahlia” was added with the id 2.");
      expect(await page.isVisible("#undo")).toBe(false);
      expect(await shownNames(page)).toEqual(["Acer", "Dahlia"]);
      expect(await stored()).toEqual(["Acer", "Dahlia"]);
    },
  );

  testGarden(
    "ignores a response that arrives after signing out",
    { hasClock: true },
    async ({ page, service, stored }) => {
      const next = await makeGarden(service);
      await page.route("**/plants", (route) => route.fulfill(limited(9)));
      await page.click("#first-add");
      const refused = page.waitForResponse("**/plants");
      await add(page, "Acer");
      await refused;
      await signOut(page);
      await signIn(page, next);
      await page.unroute("**/plants");
      await page.click("#first-add");
      expect(await page.isEnabled("#add-button")).toBe(true);
      await page.clock.fastForward(10_000);
      await page.fill("#add-name", "Betula");
      expect(await page.textContent("#add-error")).toBe("");
      expect(await stored()).toEqual([]);
    },
  );
});

describe("deleting a plant", () => {
  testGarden(
    "can be undone for six seconds, or as long as the pointer or the focus is on the message",
    { plants: somePlants, hasClock: true },
    async ({ page, token, stored }) => {
      const names = somePlants.map(({ name }) => name);
      const deletions: string[] = [];
      page.on("request", (each) => each.method() === "DELETE" && deletions.push(each.url()));
      await deletePlants(page, "Olea europaea", "Aloë vera");
      await page.hover("#undo");
      await page.clock.fastForward(60_000);
      expect(await page.textContent("#undo-text")).toContain("“Olea europaea” and 1 more");
      expect(await shownNames(page)).toHaveLength(10);
      await inspect(page, "deleting");
      await page.click("#undo-button");
      expect(await shownNames(page)).toEqual(names);
      expect(await page.isVisible("#undo")).toBe(false);

      await deletePlants(page, "Ficus lyrata");
      await page.focus("#undo-button");
      await page.hover("#undo-text");
      await page.mouse.move(0, 0);
      await page.clock.fastForward(60_000);
      expect(await page.isVisible("#undo")).toBe(true);
      // Whoever leaves the page deletes nothing.
      await page.reload();
      await signIn(page, token);
      expect(deletions).toEqual([]);

      await deletePlants(page, "Monstera deliciosa");
      await page.clock.fastForward(6_000);
      await page.waitForSelector("#notice:has-text('“Monstera deliciosa” was deleted.')");
      expect(await stored()).toEqual(names.slice(1));
    },
  );

  testGarden(
    "is sent when signing out, which waits for it and says what is uncertain",
    { plants: somePlants, hasClock: true },
    async ({ page, token, stored }) => {
      const names = somePlants.map(({ name }) => name);
      await deletePlants(page, "Monstera deliciosa");
      await signOut(page);
      expect(await page.isVisible("#sign-in-reason")).toBe(false);
      expect(await stored()).toEqual(names.slice(1));

      // The first one is under way by then.
      await signIn(page, token);
      const held = Promise.withResolvers<void>();
      await page.route("**/plants/2", async (route) => {
        await held.promise;
        await route.continue();
      });
      await deletePlants(page, "Ficus lyrata", "Dryopteris filix-mas");
      const begun = page.waitForRequest("**/plants/2");
      await page.clock.fastForward(6_000);
      await begun;
      await page.click("#sign-out");
      held.resolve();
      await page.waitForSelector("#sign-in:not([hidden])");
      expect(await stored()).toEqual(names.slice(3));

      await signIn(page, token);
      await page.route("**/plants/4", loseResponse);
      await deletePlants(page, "Rosmarinus officinalis");
      await signOut(page);
      const uncertain = "Signed out. These plants may not have been deleted: “Rosmarinus";
      await page.waitForSelector(`text=${uncertain}`);
      expect(await stored()).toEqual(names.slice(4));

      await signIn(page, token);
      await page.route("**/plants/5", (route) => route.fulfill(unauthenticated));
      await deletePlants(page, "Ocimum basilicum", "Thymus vulgaris");
      await signOut(page);
      await page.waitForSelector(
        "#sign-in-reason:has-text('“Ocimum basilicum”, “Thymus vulgaris”')",
      );
      expect(await page.isVisible("#notice")).toBe(false);
      expect(await stored()).toEqual(names.slice(4));
    },
  );

  testGarden(
    "is never sent to the garden of whoever signs in next",
    { plants: somePlants.slice(0, 2), hasClock: true },
    async ({ page, service, stored }) => {
      const next = await makeGarden(service, somePlants.slice(0, 2));
      await page.route("**/plants/1", (route) => route.fulfill(limited(9)));
      await deletePlants(page, "Monstera deliciosa", "Ficus lyrata");
      const refused = page.waitForResponse("**/plants/1");
      await page.click("#sign-out");
      await refused;
      await page.clock.fastForward(5_000);
      await page.waitForSelector("#sign-in:not([hidden])");
      await signIn(page, next);
      await page.clock.fastForward(5_000);
      await deletePlants(page, "Ficus lyrata");
      await page.click("#undo-button");
      expect(await stored()).toHaveLength(2);
      expect(await harvest(service, next)).toHaveLength(2);
    },
  );

  testGarden(
    "shows the plant again unless the service says that it is gone",
    { plants: somePlants.slice(0, 2), hasClock: true },
    async ({ page, call }) => {
      for (const respond of [
        (route: Route) => route.abort(),
        (route: Route) => route.fulfill(signInPage),
      ]) {
        await page.unroute("**/plants/1");
        await page.route("**/plants/1", respond);
        await deletePlants(page, "Monstera deliciosa");
        await page.clock.fastForward(6_000);
        await page.waitForSelector("#notice.trouble:has-text('“Monstera deliciosa” may not')");
        expect(await shownNames(page)).toEqual(["Monstera deliciosa", "Ficus lyrata"]);
        await inspect(page, "not-deleted");
      }
      await call("DELETE /plants/2");
      await deletePlants(page, "Ficus lyrata");
      await page.clock.fastForward(6_000);
      await page.waitForSelector("text=“Ficus lyrata” had already been deleted.");
      expect(await shownNames(page)).toEqual(["Monstera deliciosa"]);
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
  },
);
