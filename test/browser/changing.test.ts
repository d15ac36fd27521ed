/** Changing a garden in the console: adding, deleting, undoing, and responses that go astray. */
import { expect } from "bun:test";
import type { Page, Route } from "playwright-core";
import { inspect } from "./browser.ts";
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

function refuse(status: 401 | 429, type: string, retryAfterSeconds: number) {
  const headers = {
    "Content-Type": "application/problem+json",
    "Retry-After": String(retryAfterSeconds),
  };
  return { status, headers, body: JSON.stringify({ type, detail: "Too soon." }) };
}
const limited = (seconds: number) => refuse(429, "urn:plantstore:problem:rate-limited", seconds);

async function add(page: Page, name: string, id = ""): Promise<void> {
  await page.fill("#add-name", name);
  await page.fill("#add-id", id);
  await page.click("#add-button");
}

testGarden(
  "adding works from an empty garden, with every digit of an id, and shows errors at fields",
  {},
  async ({ page, stored }) => {
    await page.waitForSelector("#empty");
    await inspect(page, "empty");
    await page.click("#first-add");
    await page.fill("#add-tag", "living room");
    await add(page, "Monstera deliciosa");
    await page.waitForSelector("#notice:has-text('“Monstera deliciosa” was added with the id 1.')");
    await add(page, "Sequoia", "9007199254740993");
    await page.waitForSelector("text=9007199254740993");
    await add(page, "Welwitschia", "-9223372036854775808");
    await page.waitForSelector(".row:has-text('Welwitschia')");
    expect(await shownNames(page)).toEqual(["Welwitschia", "Monstera deliciosa", "Sequoia"]);
    await waitForTitle(page, "3 plants");
    expect(await stored()).toEqual(await shownNames(page));

    await page.fill("#add-tag", "t".repeat(101));
    for (const [name, id] of [
      ["", ""],
      ["Acer", "7x"],
    ] as const) {
      await add(page, name, id);
      await page.waitForSelector(`#add-${name === "" ? "name" : "id"}:invalid:focus`);
    }
    await add(page, " ", "9223372036854775808");
    await page.waitForSelector("#add-name[aria-invalid=true]:focus");
    for (const field of ["name", "tag", "id"]) {
      expect(await page.textContent(`#add-${field}-error`)).toMatch(/^Must .+\.$/);
    }
    await inspect(page, "errors");
    await page.fill("#add-tag", "bathroom");
    await page.waitForSelector("#add-tag[aria-invalid=false]");
    await add(page, "Calathea orbifolia", "1");
    await page.waitForSelector("#add-id[aria-invalid=true]:focus");
    expect(await page.inputValue("#add-name")).toBe("Calathea orbifolia");
  },
);

const rightToLeft = { name: "שושנה (2", tag: "גן" };
const markup = { name: "<img src=x onerror=alert(1)>", tag: "<b>bold</b>" };

testGarden(
  "names are shown as they are: never as HTML, and never reordering what is around them",
  { plants: [rightToLeft, markup] },
  async ({ page }) => {
    await page.waitForSelector("#rows .row");
    expect(await shownNames(page)).toEqual([rightToLeft.name, markup.name]);
    expect(await page.locator("#garden img, #garden b").count()).toBe(0);
    for (const place of ["#rows .name", "#rows .tag", ".chip"]) {
      expect(await page.locator(`${place} bdi`).count()).toBe(2);
    }
    await deletePlants(page, rightToLeft.name);
    expect(await page.textContent("#undo-text bdi")).toBe(rightToLeft.name);
  },
);

testGarden(
  "a plant is stored once, however many responses are lost, refused, or not the service's",
  {},
  async ({ page, stored }) => {
    const addError = (text: string) => page.waitForSelector(`#add-error:has-text('${text}')`);
    await page.click("#first-add");
    await page.route("**/plants", loseResponse);
    await add(page, "Acer");
    await addError("did not respond");
    for (const [response, error] of [
      [limited(99), "Too soon."],
      [{ contentType: "text/html", body: "<html>Sign in</html>" }, "responded, with status 200."],
      [refuse(401, "about:blank", 0), "responded, with status 401."],
    ] as const) {
      await page.unroute("**/plants");
      await page.route("**/plants", (route) => route.fulfill(response));
      await page.click("#add-button");
      await addError(error);
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

testGarden(
  "deleting is done at once, and undone with the same id, step by step, until it is dismissed",
  { plants: somePlants },
  async ({ page, stored }) => {
    const names = somePlants.map(({ name }) => name);
    await deletePlants(page, "Olea europaea", "Aloë vera");
    expect(await stored()).toHaveLength(10);
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
    await page.keyboard.press("z");
    expect(await stored()).toHaveLength(11);
  },
);

testGarden(
  "deleting shows what somebody else has made of it, and the focused button keeps that",
  { plants: [{ name: "Fern", tag: "hall" }, { name: "Ivy" }] },
  async ({ page, call, stored }) => {
    const rename = (name: string) => call("PUT /plants/1", JSON.stringify({ name }));
    await setHidden(page, true);
    await openCard(page, "Fern");
    await rename("Royal fern");
    await page.click("#plant-delete");
    await page.waitForSelector(
      "#plant-note:has-text('It was “Fern”, tagged “hall”, and is “Royal fern” now.')",
    );
    expect(await page.textContent("#plant-title")).toBe("Royal fern");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#plant", { state: "hidden" });
    expect(await shownNames(page)).toEqual(["Royal fern", "Ivy"]);
    // The list is old, too. And changed after the page looked again: only the service can notice.
    await rename("Tree fern");
    await page.focus(".opener:has-text('Royal')");
    await page.keyboard.press("Delete");
    await page.waitForSelector("#plant-title:has-text('Tree fern')");
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

testGarden(
  "a read-only token is offered no changes",
  { access: { scope: "read", garden: "roses", expiresAtMs: Date.UTC(2099, 11, 31, 12) } },
  async ({ page, token, service }) => {
    expect(await page.textContent("#me")).toMatch(
      /^garden-\d+ · garden roses · read only · expires December 31, 2099 at /,
    );
    await page.waitForSelector("#empty:has-text('this token can only read')");
    await makeGarden(service, somePlants, { garden: "roses" });
    await page.reload();
    await signIn(page, token);
    const writing = "#add:visible, #open-add, #choose-file, #select, #plant-edit, #plant-delete";
    for (const key of ["n", "x"]) await page.keyboard.press(key);
    expect(await page.locator(writing).count()).toBe(0);
    await page.focus(".opener");
    await page.keyboard.press("Delete");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#plant-fields:visible");
    expect(await page.locator(writing).count()).toBe(0);
  },
);
