/** Changing plants in the console, one by one and many at a time, while others do, too. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { inspect } from "./browser.ts";
import {
  deletePlants,
  makeClient,
  openCard,
  setHidden,
  shownNames,
  signIn,
  somePlants,
  useConsole,
  waitForTitle,
} from "./signed-in.ts";

const testGarden = useConsole();

async function add(page: Page, name: string, id = ""): Promise<void> {
  await page.fill("#add-name", name);
  await page.fill("#add-id", id);
  await page.click("#add-button");
}

async function openForm(page: Page, name: string): Promise<void> {
  await openCard(page, name);
  await page.click("#plant-edit");
  await page.waitForSelector("#edit-name:focus");
}

function checkedNames(page: Page): Promise<string[]> {
  return page.locator(".row:has(:checked) .name").allTextContents();
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
    await page.waitForSelector(".row:has-text('9007199254740993')");
    await add(page, "Welwitschia", "-9223372036854775808");
    await page.waitForSelector(".row:has-text('Welwitschia')");
    expect(await shownNames(page)).toEqual(["Welwitschia", "Monstera deliciosa", "Sequoia"]);
    await waitForTitle(page, "3 plants");
    expect(await stored()).toEqual(await shownNames(page));

    await page.fill("#add-tag", "t".repeat(101));
    await add(page, "Acer", "7x");
    await page.waitForSelector("#add-id:invalid:focus");
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

testGarden(
  "a plant whose response was lost is stored once, however often and when it is added again",
  {},
  async ({ page, stored }) => {
    await page.click("#first-add");
    await page.route("**/plants", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await add(page, "Acer");
    await page.waitForSelector("#add-error:has-text('did not respond')");
    await page.unroute("**/plants");
    await add(page, "Betula");
    await page.waitForSelector("#notice:has-text('“Betula” was added')");
    const headers = { "Content-Type": "application/problem+json", "Retry-After": "99" };
    const body = '{"type":"urn:plantstore:problem:rate-limited","detail":"Too soon."}';
    const limited = { status: 429, headers, body };
    await page.route("**/plants", (route) => route.fulfill(limited), { times: 1 });
    await add(page, "Acer");
    await page.waitForSelector("#add-error:has-text('Too soon.')");
    await page.click("#add-button");
    await page.waitForSelector("#notice:has-text('“Acer” was added with the id 1.')");
    expect(await stored()).toEqual(["Acer", "Betula"]);
  },
);

const rightToLeft = { name: "שושנה (2", tag: "גן" };
const markup = { name: "<img src=x onerror=alert(1)>", tag: "<b>bold</b>" };

testGarden(
  "deleting is done at once and undone with the same id, step by step; names are never HTML, and reorder nothing around them",
  { plants: [rightToLeft, markup, ...somePlants] },
  async ({ page, stored }) => {
    const names = [rightToLeft, markup, ...somePlants].map(({ name }) => name);
    expect(await shownNames(page)).toEqual(names);
    await page.waitForSelector(".chip");
    expect(await page.locator("#garden img, #garden b").count()).toBe(0);
    expect(
      await page.locator("#rows .name bdi, #rows .tag bdi, .chip bdi").allTextContents(),
    ).toEqual(expect.arrayContaining([rightToLeft.name, rightToLeft.tag, markup.name, markup.tag]));
    await deletePlants(page, "Olea europaea", rightToLeft.name);
    expect(await page.textContent("#undo-text bdi")).toBe(rightToLeft.name);
    expect(await stored()).toHaveLength(12);
    await inspect(page, "deleting");
    await page.click("#undo-button");
    await page.waitForSelector(`#notice:has-text('“${rightToLeft.name}” is back.')`);
    expect(await page.textContent("#undo-text")).toBe("“Olea europaea” was deleted.");
    await page.click("#undo-button");
    await page.waitForSelector("#undo", { state: "hidden" });
    expect(await shownNames(page)).toEqual(names);
    expect(await stored()).toEqual(names);
  },
);

testGarden(
  "deleting shows what somebody else has made of it, and the focused button keeps that",
  { plants: [{ name: "Fern", tag: "hall" }, { name: "Ivy" }] },
  async ({ page, store, stored }) => {
    const rename = (name: string) => store.put(1, { name });
    // A hidden page has no stream, so it hears nothing of what others do.
    await setHidden(page, true);
    await openCard(page, "Fern");
    await rename("Royal fern");
    await page.click("#plant-delete");
    await page.waitForSelector("#plant-note:has-text('It was “Fern”, tagged “hall”')");
    expect(await page.textContent("#plant-title")).toBe("Royal fern");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#plant", { state: "hidden" });
    expect(await shownNames(page)).toEqual(["Royal fern", "Ivy"]);
    // Changed after the page looked again: only the service can notice.
    await page.route("**/plants/1", async (route) => {
      if (route.request().method() === "DELETE") await rename("Last fern");
      await route.continue();
    });
    await page.focus(".opener:has-text('Royal')");
    await page.keyboard.press("Delete");
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
  { isSignedIn: false },
  async ({ page, store, service, user: garden }) => {
    const expiresAtMs = Date.UTC(2099, 11, 31, 12);
    const reader = { user: "ann", garden, scope: "read", expiresAtMs } as const;
    await signIn(page, (await makeClient(service, reader)).token);
    const access = `ann · garden ${garden} · read only · expires December 31, 2099 at `;
    expect(await page.textContent("#me")).toStartWith(access);
    await page.waitForSelector("#empty:has-text('this token can only read')");
    await store.create({ name: "Fern" });
    await page.waitForSelector(".row:has-text('Fern')");
    for (const key of ["n", "x"]) await page.keyboard.press(key);
    await page.focus(".opener");
    await page.keyboard.press("Delete");
    const writing = "#add:visible, #open-add, #choose-file, #select, #plant-edit, #plant-delete";
    expect(await page.locator(writing).count()).toBe(0);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#plant[open]");
    expect(await page.locator(writing).count()).toBe(0);
  },
);

testGarden(
  "editing shows the change at once in list, tags and count",
  { plants: somePlants },
  async ({ page, store }) => {
    await openForm(page, "Ocimum");
    await page.fill("#edit-name", "Ocimum sanctum");
    await page.fill("#edit-tag", "kitchen");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#notice:has-text('“Ocimum sanctum” was saved.')");
    await page.waitForSelector(".opener:has-text('Ocimum sanctum'):focus");
    await page.waitForSelector(".chip:has-text('kitchen 2')");
    expect(await store.get(5)).toMatchObject({ name: "Ocimum sanctum", tag: "kitchen" });

    // Out of the list of its tag, too, and the keyboard goes on from somewhere.
    await page.click(".chip:has-text('kitchen')");
    await waitForTitle(page, "2 plants");
    await openForm(page, "Aloë vera");
    await page.fill("#edit-tag", "");
    await page.click("#edit-save");
    await waitForTitle(page, "1 plant");
    await page.waitForSelector("#garden-title:focus");
  },
);

testGarden(
  "editing starts from what the service has, and shows what somebody else changed in between",
  { plants: [{ name: "Fern", tag: "hall" }] },
  async ({ page, store, stored }) => {
    const saveAfter = async (name: string) => {
      await store.put(1, { name });
      await page.click("#edit-save");
      await page.waitForSelector(`#plant:has-text('“${name}”')`);
      expect(await stored()).toEqual([name]);
    };
    await setHidden(page, true);
    await store.put(1, { name: "Tree fern", tag: "shade" });
    await openCard(page, "Fern");
    await page.waitForSelector("#plant-title:has-text('Tree fern')");
    await page.click("#plant-edit");
    await page.fill("#edit-name", "My fern");
    await saveAfter("Royal fern");
    await page.waitForSelector("#plant-note:has-text(' changed this plant (')");
    // Only they changed the tag.
    expect(await page.inputValue("#edit-tag")).toBe("");
    await inspect(page, "edit-conflict");
    // The focused button loses neither version.
    await page.keyboard.press("Enter");
    await page.waitForSelector("#edit-name:focus");
    expect(await page.inputValue("#edit-name")).toBe("My fern");
    await saveAfter("Theirs");
    await page.click("#edit-save:text-is('Save yours instead')");
    await page.waitForSelector("#notice:has-text('“My fern” was saved.')");
    expect(await stored()).toEqual(["My fern"]);
  },
);

testGarden(
  "editing asks before it drops text, and adds a plant again that somebody deleted",
  { plants: somePlants.slice(0, 3) },
  async ({ page, store, stored }) => {
    await setHidden(page, true);
    await store.delete(1);
    await openCard(page, "Monstera");
    await page.waitForSelector("#plant-note:has-text(' deleted this plant (')");
    expect(await page.locator("#plant button:visible").count()).toBe(2);
    await page.click("#plant-close");
    expect(await shownNames(page)).toEqual(["Ficus lyrata", "Dryopteris filix-mas"]);
    await openForm(page, "Ficus");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#plant", { state: "hidden" });
    await openForm(page, "Ficus");
    await page.fill("#edit-name", "Ficus elastica");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#confirm-title:has-text('Discard your changes?')");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#confirm", { state: "hidden" });
    await store.delete(2);
    await page.click("#edit-save");
    await page.waitForSelector("#plant-note:has-text('Your changes aren’t saved.')");
    await page.waitForSelector("#edit-resume:focus");
    expect(await page.isVisible("#edit-save")).toBe(false);
    await page.click("#plant-again:text-is('Add it again')");
    await page.waitForSelector("#notice:has-text('“Ficus elastica” was added with the id 2.')");
    expect(await stored()).toEqual(["Ficus elastica", "Dryopteris filix-mas"]);
  },
);

testGarden(
  "plants are selected by clicks, by Shift for a range and by keys, and deleted together",
  { plants: somePlants },
  async ({ page, stored }) => {
    const names = somePlants.map(({ name }) => name);
    await page.click("#select");
    expect(await page.isVisible("#delete-selected")).toBe(false);
    await page.click(".row:has-text('Ficus')");
    await page.click(".row:has-text('Thymus')", { modifiers: ["Shift"] });
    expect(await checkedNames(page)).toEqual(names.slice(1, 6));
    await page.click(".row:has-text('Dryopteris') input");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Space");
    expect(await checkedNames(page)).toEqual(names.slice(3, 6));
    await inspect(page, "selecting");
    await page.keyboard.press("Escape");
    expect(await page.locator("#rows input").count()).toBe(0);

    await page.keyboard.press("x");
    await page.focus("#filter");
    for (const key of ["ArrowDown", "Space", "ArrowDown", "Shift+ArrowDown"]) {
      await page.keyboard.press(key);
    }
    await page.click("#delete-selected:text-is('Delete 3 plants')");
    await page.waitForSelector("#undo:has-text('3 plants were deleted.')");
    expect(await stored()).toEqual(names.slice(3));
    expect(await shownNames(page)).toEqual(names.slice(3));
    expect(await page.isVisible("#selection")).toBe(false);
    await page.keyboard.press("z");
    await page.waitForSelector("#notice:has-text('3 plants are back.')");
    expect(await shownNames(page)).toEqual(names);
  },
);

testGarden(
  "all plants that match get another tag or are deleted after a confirmation, loaded or not",
  { plants: Array.from({ length: 1_300 }, (_, index) => ({ name: `Plant ${index + 1}` })) },
  async ({ page, stored }) => {
    await page.fill("#filter", "plant 12");
    await waitForTitle(page, "132 plants");
    await page.click("#select");
    await page.click("#select-all:text-is('Select all 132 that match')");
    await page.click("#tag-selected");
    await page.waitForSelector("#new-tag:focus");
    await page.keyboard.type("hall");
    await inspect(page, "tagging");
    await page.click("#tag-button:text-is('Change 132 plants')");
    await page.click("#confirm-yes");
    await page.waitForSelector("#undo:has-text('132 plants have the tag “hall” now.')");
    await page.waitForSelector(".chip:has-text('hall 132')");

    await page.press("#filter", "Escape");
    await waitForTitle(page, "1,300 plants");
    await page.keyboard.press("Escape");
    await page.keyboard.press("x");
    await page.click("#select-all:text-is('Select all 1,300 plants')");
    await page.waitForSelector("#select-all:text-is('Select none')");
    await page.click("#delete-selected:text-is('Delete 1,300 plants')");
    await page.waitForSelector("#confirm[open] #confirm-title:text-is('Delete the whole garden?')");
    await inspect(page, "delete-garden");
    // The focused button and Escape mean no, and the selection stays.
    await page.keyboard.press("Enter");
    await page.waitForSelector("#confirm", { state: "hidden" });
    await page.click("#delete-selected");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#confirm", { state: "hidden" });
    expect(await page.textContent("#selection-note")).toBe("1,300 selected");
    await page.click(".row:has-text('Plant 1')");
    await page.click("#delete-selected:text-is('Delete 1,299 plants')");
    await page.click("#confirm-yes:text-is('Delete 1,299 plants')");
    await page.waitForSelector("#undo:has-text('1,299 plants were deleted.')");
    expect(await stored()).toEqual(["Plant 1"]);
  },
);

testGarden(
  "an import that is stopped waits for its request, and undoing it deletes what that added",
  {},
  async ({ page, stored }) => {
    const isLooked = Promise.withResolvers<void>();
    await page.route("**/plants/bulk", async (route) => {
      await isLooked.promise;
      await route.continue();
    });
    // Rows with ids go first, in a request of their own.
    const buffer = Buffer.from("id,name\n7,Acer\n,Betula\n");
    await page.setInputFiles("#import-file", { name: "plants.csv", mimeType: "text/csv", buffer });
    const underWay = page.waitForRequest("**/plants/bulk");
    await page.click("#transfer-actions button:text-is('Add 2 plants')");
    await underWay;
    await page.click("#transfer-actions button:text-is('Stop')");
    await page.waitForSelector("#transfer-note:text-is('Stopping…')");
    await page.waitForSelector("#transfer-actions button:text-is('Stop now'):focus");
    await inspect(page, "import-stopping");
    isLooked.resolve();
    await page.waitForSelector("#transfer-note:has-text('Stopped. Added 1 plant in ')");
    expect(await stored()).toEqual(["Acer"]);
    await page.click("#undo-button");
    await page.waitForSelector("#notice:has-text('The import was undone: 1 plant deleted.')");
    expect(await stored()).toEqual([]);
  },
);
