/** Adding plants one by one in the console. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { expectAccessible } from "./browser.ts";
import { shownNames, useConsole, waitForCount } from "./signed-in.ts";

/** Its tests also fail if the page logs errors, calls other hosts or violates its policy. */
const testPage = useConsole();

/** Sends the open form with this name. */
async function add(page: Page, name: string): Promise<void> {
  await page.fill("#add-name", name);
  await page.click("#add-button");
}

testPage(
  "an empty garden offers to add a plant, and then one after another",
  {},
  async ({ page, storedNames }) => {
    await page.waitForSelector("#empty");
    await expectAccessible(page, "empty");

    await page.click("#first-add");
    await page.waitForSelector("#add-name:focus");
    await page.keyboard.type("Monstera deliciosa");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#undo:has-text('“Monstera deliciosa” was added with the id 1.')");

    await page.waitForSelector("#add-name:focus");
    expect(await page.inputValue("#add-name")).toBe("");
    await page.keyboard.type("Acer");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#undo:has-text('“Acer” was added with the id 2.')");

    expect(await page.inputValue("#add-name")).toBe("");
    await waitForCount(page, "2 plants");
    expect(await storedNames()).toEqual(["Monstera deliciosa", "Acer"]);
    await expectAccessible(page, "adding");
  },
);

testPage(
  "undoing an addition deletes that plant again",
  { plants: [{ name: "Monstera deliciosa" }] },
  async ({ page, storedNames }) => {
    await page.click("#open-add");
    await add(page, "Acer");
    await page.waitForSelector("#undo:has-text('“Acer” was added with the id 2.')");

    await page.waitForSelector("#add-name:focus");
    await page.keyboard.press("Escape");
    await page.keyboard.press("z");

    await page.waitForSelector("#notice:has-text('“Acer” was deleted again.')");
    expect(await storedNames()).toEqual(["Monstera deliciosa"]);
    expect(await shownNames(page)).toEqual(["Monstera deliciosa"]);
  },
);

testPage("a chosen id keeps its sign and every digit", {}, async ({ page, store }) => {
  await page.click("#first-add");
  await page.click("#choose-id");
  await page.waitForSelector("#add-id:focus");

  await page.fill("#add-id", "9007199254740993");
  await add(page, "Sequoia");
  await page.waitForSelector(".row:has-text('9007199254740993')");
  await page.fill("#add-id", "-9223372036854775808");
  await add(page, "Welwitschia");
  await page.waitForSelector(".row:has-text('Welwitschia')");

  expect(await Array.fromAsync(store.list())).toMatchObject([
    { id: -9223372036854775808n, name: "Welwitschia" },
    { id: 9007199254740993n, name: "Sequoia" },
  ]);
});

testPage(
  "each invalid field is marked and says what is wrong, until it is changed",
  {},
  async ({ page, storedNames }) => {
    await page.click("#first-add");
    await page.click("#choose-id");
    await page.fill("#add-tag", "t".repeat(101));

    // Not a number: the page itself refuses it.
    await page.fill("#add-id", "7x");
    await add(page, "Acer");
    await page.waitForSelector("#add-id:invalid:focus");
    expect(await storedNames()).toEqual([]);

    await page.fill("#add-id", "9223372036854775808");
    await add(page, " ");
    await page.waitForSelector("#add-name[aria-invalid=true]:focus");
    expect(await page.textContent("#add-name-error")).toMatch(/^Must .+\.$/);
    expect(await page.textContent("#add-tag-error")).toMatch(/^Must .+\.$/);
    expect(await page.textContent("#add-id-error")).toMatch(/^Must .+\.$/);
    await expectAccessible(page, "errors");

    await page.fill("#add-tag", "bathroom");
    await page.waitForSelector("#add-tag[aria-invalid=false]");
  },
);

testPage(
  "a taken id is reported at its field, and what was typed stays there",
  { plants: [{ id: 9007199254740993n, name: "Sequoia" }] },
  async ({ page }) => {
    await page.click("#open-add");
    await page.click("#choose-id");

    await page.fill("#add-id", "9007199254740993");
    await add(page, "Calathea orbifolia");

    await page.waitForSelector("#add-id[aria-invalid=true]:focus");
    expect(await page.inputValue("#add-name")).toBe("Calathea orbifolia");
  },
);

testPage(
  "a plant that can't be added says so even if the form was closed",
  { plants: [{ name: "Fern" }] },
  async ({ page }) => {
    await page.click("#open-add");
    const failing = Promise.withResolvers<void>();
    await page.route("**/plants", async (route) => {
      await failing.promise;
      await route.abort();
    });
    await add(page, "Acer");
    await page.click("#close-add");
    failing.resolve();

    await page.waitForSelector("#notice:has-text('“Acer” may not have been added.')");
    await page.unroute("**/plants");
  },
);

testPage(
  "adding a plant again after its response was lost stores it once",
  {},
  async ({ page, storedNames }) => {
    await page.click("#first-add");
    await page.route("**/plants", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await add(page, "Acer");
    await page.waitForSelector("#add-error:has-text('did not respond')");
    await page.unroute("**/plants");

    // Another plant in between, and a second try that is refused.
    await add(page, "Betula");
    await page.waitForSelector("#undo:has-text('“Betula” was added')");
    const rateLimited = {
      status: 429,
      headers: { "Content-Type": "application/problem+json", "Retry-After": "99" },
      body: '{"type":"urn:plantstore:problem:rate-limited","detail":"Too soon."}',
    };
    await page.route("**/plants", (route) => route.fulfill(rateLimited), { times: 1 });
    await add(page, "Acer");
    await page.waitForSelector("#add-error:has-text('Too soon.')");

    await page.click("#add-button");
    await page.waitForSelector("#undo:has-text('“Acer” was added with the id 1.')");
    expect(await storedNames()).toEqual(["Acer", "Betula"]);
  },
);

testPage(
  "adding to the list of a tag starts with that tag",
  { plants: [{ name: "Olea europaea", tag: "terrace" }, { name: "Acer" }] },
  async ({ page }) => {
    await page.click(".chip:has-text('terrace')");
    await waitForCount(page, "1 plant");

    await page.keyboard.press("n");

    await page.waitForSelector("#add-name:focus");
    expect(await page.inputValue("#add-tag")).toBe("terrace");
  },
);

testPage(
  "the page says so if an added plant isn't in the list",
  { plants: [{ name: "Olea europaea", tag: "terrace" }, { name: "Acer" }] },
  async ({ page }) => {
    await page.click(".chip:has-text('terrace')");
    await waitForCount(page, "1 plant");

    await page.click("#open-add");
    await page.fill("#add-tag", "hall");
    await add(page, "Hosta");

    await page.waitForSelector("#undo:has-text('It isn’t in this list.')");
  },
);
