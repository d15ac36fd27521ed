/** Changing plants in the console, one by one and many at a time, while others do, too. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { inspect } from "./browser.ts";
import {
  deletePlants,
  edit,
  importFile,
  makeClient,
  select,
  setHidden,
  shownNames,
  signIn,
  somePlants,
  sortNames,
  useConsole,
  waitForCount,
} from "./signed-in.ts";

const testGarden = useConsole();

async function add(page: Page, name: string): Promise<void> {
  await page.fill("#add-name", name);
  await page.click("#add-button");
}

function checkedNames(page: Page): Promise<string[]> {
  return page.locator("#rows .row:has(:checked) > .name").allTextContents();
}

testGarden(
  "adding works from an empty garden, one plant after another, and can be undone",
  {},
  async ({ page, stored }) => {
    await page.waitForSelector("#empty");
    await inspect(page, "empty");
    await page.click("#first-add");
    for (const name of ["Monstera deliciosa", "Acer"]) {
      await page.waitForSelector("#add-name:focus");
      await page.keyboard.type(name);
      await page.keyboard.press("Enter");
      await page.waitForSelector(`#undo:has-text('“${name}” was added with the id ')`);
    }
    expect(await page.inputValue("#add-name")).toBe("");
    await waitForCount(page, "2 plants");
    await inspect(page, "adding");
    await page.keyboard.press("Escape");
    await page.keyboard.press("z");
    await page.waitForSelector("#notice:has-text('“Acer” was deleted again.')");
    expect(await stored()).toEqual(["Monstera deliciosa"]);
    expect(await shownNames(page)).toEqual(["Monstera deliciosa"]);
  },
);

testGarden(
  "adding takes every digit of an id, and shows what is wrong at the field",
  {},
  async ({ page, stored }) => {
    await page.click("#first-add");
    await page.click("#choose-id");
    await page.waitForSelector("#add-id:focus");
    const addWithId = async (name: string, id: string) => {
      await page.fill("#add-id", id);
      await add(page, name);
    };
    await addWithId("Sequoia", "9007199254740993");
    await page.waitForSelector(".row:has-text('9007199254740993')");
    await addWithId("Welwitschia", "-9223372036854775808");
    await page.waitForSelector(".row:has-text('Welwitschia')");
    expect(await stored()).toEqual(["Welwitschia", "Sequoia"]);

    await page.fill("#add-tag", "t".repeat(101));
    await addWithId("Acer", "7x");
    await page.waitForSelector("#add-id:invalid:focus");
    await addWithId(" ", "9223372036854775808");
    await page.waitForSelector("#add-name[aria-invalid=true]:focus");
    for (const field of ["name", "tag", "id"]) {
      expect(await page.textContent(`#add-${field}-error`)).toMatch(/^Must .+\.$/);
    }
    await inspect(page, "errors");
    await page.fill("#add-tag", "bathroom");
    await page.waitForSelector("#add-tag[aria-invalid=false]");
    await addWithId("Calathea orbifolia", "9007199254740993");
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
    await page.waitForSelector("#undo:has-text('“Betula” was added')");
    const headers = { "Content-Type": "application/problem+json", "Retry-After": "99" };
    const body = '{"type":"urn:plantstore:problem:rate-limited","detail":"Too soon."}';
    const limited = { status: 429, headers, body };
    await page.route("**/plants", (route) => route.fulfill(limited), { times: 1 });
    await add(page, "Acer");
    await page.waitForSelector("#add-error:has-text('Too soon.')");
    await page.click("#add-button");
    await page.waitForSelector("#undo:has-text('“Acer” was added with the id 1.')");
    expect(await stored()).toEqual(["Acer", "Betula"]);
  },
);

const rightToLeft = { name: "שושנה (2", tag: "גן" };
const markup = { name: "<img src=x onerror=alert(1)>", tag: "<b>bold</b>" };

testGarden(
  "deleting is done at once and undone with the same id, step by step; names are never HTML, and reorder nothing around them",
  { plants: [rightToLeft, markup, ...somePlants] },
  async ({ page, stored }) => {
    const names = sortNames([rightToLeft, markup, ...somePlants]);
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
    expect(await stored()).toHaveLength(14);
  },
);

testGarden(
  "deleting shows what somebody else has made of it, and Enter deletes nothing then",
  { plants: [{ name: "Fern", tag: "hall" }, { name: "Ivy" }] },
  async ({ page, store, stored }) => {
    const rename = (name: string) => store.put(1, { name });
    // A hidden page has no stream, so it hears nothing of what others do.
    await setHidden(page, true);
    await edit(page, "Fern");
    await rename("Royal fern");
    await page.click("#plant-delete");
    await page.waitForSelector("#finding:has-text('Fern → Royal fern'):focus");
    expect(await page.textContent("#finding-text")).toContain("tag hall → none");
    await page.keyboard.press("Enter");
    await page.click("#keep-theirs");
    await page.waitForSelector("#edit", { state: "detached" });
    expect(await shownNames(page)).toEqual(["Royal fern", "Ivy"]);
    // Changed after the page looked again: only the service can notice.
    await page.route("**/plants/1", async (route) => {
      if (route.request().method() === "DELETE") await rename("Last fern");
      await route.continue();
    });
    await page.focus(".opener:has-text('Royal')");
    await page.keyboard.press("Delete");
    await page.waitForSelector("#finding:has-text('Royal fern → Last fern')");
    expect(await stored()).toEqual(["Last fern", "Ivy"]);
    await page.unroute("**/plants/1");
    await page.click("#delete-anyway");
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
    await page.click("#open-me");
    expect(await page.locator("#me dd").allTextContents()).toEqual([
      ...["ann", garden],
      expect.stringContaining("read only, expires December 31, 2099 at "),
    ]);
    expect(await page.locator("#invitation").count()).toBe(0);
    await page.keyboard.press("Escape");
    await page.waitForSelector("#me", { state: "hidden" });
    await page.waitForSelector("#empty:has-text('this token can only read')");
    await store.create({ name: "Fern" });
    await page.waitForSelector(".row:has-text('Fern')");
    for (const key of ["n", "x"]) await page.keyboard.press(key);
    await page.focus(".opener");
    await page.keyboard.press("Delete");
    const writing =
      "#add, #open-add, #open-import, #selection, #table input, #edit-save, #plant-delete";
    expect(await page.locator(writing).count()).toBe(0);
    await inspect(page, "read-only");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#edit-name[readonly]");
    expect(await page.locator("#edit button").allTextContents()).toEqual(["Close"]);
    await inspect(page, "read-only-plant");
  },
);

testGarden(
  "a plant is renamed in its row with a click and Enter, and undoing brings the old name back",
  { plants: somePlants },
  async ({ page, store }) => {
    await edit(page, "Ocimum");
    await page.fill("#edit-name", "Ocimum sanctum");
    await page.keyboard.press("Tab");
    await page.waitForSelector("#edit-tag:focus");
    await page.fill("#edit-tag", "kitchen");
    await inspect(page, "editing");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#undo:has-text('“Ocimum sanctum” was saved.')");
    await page.waitForSelector(".opener:has-text('Ocimum sanctum'):focus");
    await page.waitForSelector(".chip:has-text('kitchen 2')");
    expect(await store.get(5)).toMatchObject({ name: "Ocimum sanctum", tag: "kitchen" });
    await page.keyboard.press("z");
    await page.waitForSelector("#notice:has-text('The change of “Ocimum basilicum” was undone.')");
    expect(await store.get(5)).toMatchObject({ name: "Ocimum basilicum", tag: "herbs" });
  },
);

testGarden(
  "undoing a change leaves alone what somebody else has changed in between",
  { plants: [{ name: "Fern" }] },
  async ({ page, store }) => {
    await edit(page, "Fern");
    await page.fill("#edit-name", "Royal fern");
    await store.update(1, { tag: "shade" });
    await page.keyboard.press("Enter");
    await page.waitForSelector("#undo:has-text('Somebody else’s change is in it, too.')");

    await page.keyboard.press("z");
    await page.waitForSelector("#notice:has-text('The change of “Fern” was undone.')");

    expect(await store.get(1)).toMatchObject({ name: "Fern", tag: "shade" });
  },
);

testGarden(
  "a click on a tag opens its field, and typing replaces it",
  { plants: somePlants },
  async ({ page, store }) => {
    const tag = await page.locator("#rows .row:has-text('Ocimum') > .tag").boundingBox();
    await page.mouse.click((tag?.x ?? 0) + 5, (tag?.y ?? 0) + 5);
    await page.waitForSelector("#edit-tag:focus");

    await page.keyboard.type("kitchen");
    await page.keyboard.press("Enter");

    await page.waitForSelector("#undo:has-text('“Ocimum basilicum” was saved.')");
    expect(await store.get(5)).toMatchObject({ name: "Ocimum basilicum", tag: "kitchen" });
  },
);

testGarden(
  "a plant that is added to the list of a tag has that tag, unless it's given another",
  { plants: somePlants },
  async ({ page }) => {
    await page.click(".chip:has-text('terrace')");
    await waitForCount(page, "2 plants");
    await page.keyboard.press("n");
    await page.waitForSelector("#add-name:focus");
    expect(await page.inputValue("#add-tag")).toBe("terrace");

    await page.fill("#add-tag", "hall");
    await add(page, "Hosta");

    await page.waitForSelector("#undo:has-text('It isn’t in this list.')");
  },
);

testGarden(
  "an undo that isn't shown is shown before it is done",
  { plants: [{ name: "Fern" }, { name: "Ivy" }] },
  async ({ page, stored }) => {
    await deletePlants(page, "Fern");
    await page.click("#undo-close");
    await page.keyboard.press("z");
    await page.waitForSelector("#undo:has-text('“Fern” was deleted.')");
    expect(await stored()).toEqual(["Ivy"]);

    await page.keyboard.press("z");

    await page.waitForSelector("#notice:has-text('“Fern” is back.')");
  },
);

testGarden(
  "a plant that leaves the list of its tag leaves the keyboard somewhere to go on from",
  { plants: somePlants },
  async ({ page }) => {
    await page.click(".chip:has-text('terrace')");
    await waitForCount(page, "2 plants");
    await edit(page, "Olea");
    await page.fill("#edit-tag", "");
    await page.click("#edit-save");
    await waitForCount(page, "1 plant");
    await page.waitForSelector("#garden-title:focus");
  },
);

testGarden(
  "editing starts from what the service has, and shows what somebody else changed in between",
  { plants: [{ name: "Fern", tag: "hall" }] },
  async ({ page, store, stored }) => {
    const saveAfter = async (name: string) => {
      await store.put(1, { name });
      await page.press("#edit-name", "Enter");
      await page.waitForSelector(`#finding:has-text('→ ${name}'):focus`);
      expect(await stored()).toEqual([name]);
    };
    await setHidden(page, true);
    await store.put(1, { name: "Tree fern", tag: "shade" });
    await edit(page, "Fern");
    await page.waitForFunction(
      () => document.querySelector<HTMLTextAreaElement>("#edit-name")?.value === "Tree fern",
    );
    await page.fill("#edit-name", "My fern");
    await saveAfter("Royal fern");
    expect(await page.textContent("#finding-text")).toMatch(
      / changed it \(.+\)\. Tree fern → Royal fern tag shade → none/,
    );
    // Only they changed the tag.
    expect(await page.inputValue("#edit-tag")).toBe("");
    await inspect(page, "edit-conflict");
    expect(await page.locator("#edit").ariaSnapshot()).toContain('- alertdialog "');
    // Enter loses neither version, and Escape leads back to the fields.
    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#edit-name:focus");
    expect(await page.inputValue("#edit-name")).toBe("My fern");
    await saveAfter("Theirs");
    await page.click("#save-mine");
    await page.waitForSelector("#undo:has-text('“My fern” was saved.')");
    expect(await stored()).toEqual(["My fern"]);
  },
);

testGarden(
  "editing asks before it drops what was typed, on the way to another plant, too",
  { plants: somePlants.slice(0, 3) },
  async ({ page, stored }) => {
    await edit(page, "Ficus");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#edit", { state: "detached" });
    await edit(page, "Dryopteris");
    await page.fill("#edit-name", "Ficus elastica");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#finding:has-text('What you typed isn’t saved.'):focus");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#edit-name:focus");
    await page.goBack();
    await page.click("#edit-resume");
    expect(await page.inputValue("#edit-name")).toBe("Ficus elastica");
    await page.evaluate(() => {
      location.hash = "#plant=1";
    });
    await page.click("#edit-discard");
    await page.waitForFunction(
      () =>
        document.querySelector<HTMLTextAreaElement>("#edit-name")?.value === "Monstera deliciosa",
    );
    expect(await stored()).toEqual(somePlants.slice(0, 3).map(({ name }) => name));
  },
);

testGarden(
  "a plant that somebody deleted meanwhile can be added again in its row",
  { plants: somePlants.slice(0, 3) },
  async ({ page, store, stored }) => {
    await setHidden(page, true);
    await store.delete(1);
    await page.click("#rows .row:has-text('Monstera') > .name");
    await page.waitForSelector("#finding:has-text(' deleted it (')");
    await page.click("#keep-theirs:text-is('Leave it deleted')");
    await page.waitForSelector("#edit", { state: "detached" });
    await edit(page, "Ficus");
    await page.fill("#edit-name", "Ficus elastica");
    await store.delete(2);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#finding:has-text(' deleted it (')");
    await inspect(page, "edit-deleted");
    await page.click("#plant-again:text-is('Add it again')");
    await page.waitForSelector("#undo:has-text('“Ficus elastica” was added with the id 2.')");
    expect(await stored()).toEqual(["Ficus elastica", "Dryopteris filix-mas"]);
  },
);

testGarden(
  "plants are selected by clicks, by Shift for a range and by keys, and deleted together",
  { plants: somePlants },
  async ({ page, stored }) => {
    const names = sortNames(somePlants);
    await select(page, "Dryopteris");
    await page.click("#rows .row:has-text('Phalaenopsis')", { modifiers: ["Shift"] });
    expect(await checkedNames(page)).toEqual(names.slice(2, 9));
    await select(page, "Ficus");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("x");
    expect(await checkedNames(page)).toEqual(names.slice(4, 9));
    await inspect(page, "selecting");
    await page.keyboard.press("Escape");
    expect(await page.isVisible("#selection")).toBe(false);

    await page.focus("#filter");
    for (const key of ["ArrowDown", "x", "ArrowDown", "Shift+ArrowDown"]) {
      await page.keyboard.press(key);
    }
    expect(await page.textContent("#selection-note")).toBe("3 selected");
    await page.keyboard.press("Delete");
    await page.waitForSelector("#undo:has-text('3 plants were deleted.')");
    expect((await stored()).sort()).toEqual(names.slice(3).sort());
    expect(await shownNames(page)).toEqual(names.slice(3));
    expect(await page.isVisible("#selection")).toBe(false);
    await page.keyboard.press("z");
    await page.waitForSelector("#notice:has-text('3 plants are back.')");
    expect(await shownNames(page)).toEqual(names);
  },
);

testGarden(
  "what a search found is moved to a tag in four steps, and exported",
  { plants: somePlants },
  async ({ page }) => {
    await page.fill("#filter", "officinalis");
    await waitForCount(page, "2 plants");
    await page.click("#select-all");
    const downloading = page.waitForEvent("download");
    await page.click("#export-selected");
    const download = await downloading;
    expect(download.suggestedFilename()).toBe("selected-plants.csv");
    const chunks = await Array.fromAsync(await download.createReadStream());
    expect(Buffer.concat(chunks).toString().split("\r\n")).toHaveLength(4);
    await page.waitForSelector("#notice:has-text('Exported 2 plants.')");
    await page.fill("#new-tag", "hall");
    await inspect(page, "moving");
    await page.press("#new-tag", "Enter");
    await page.waitForSelector("#undo:has-text('2 plants have the tag “hall” now.')");
    await page.waitForSelector(".chip:has-text('hall 2')");
  },
);

testGarden(
  "more than 1,000 plants are changed after one question, loaded or not",
  { plants: Array.from({ length: 1_300 }, (_, index) => ({ name: `Plant ${index + 1}` })) },
  async ({ page, stored }) => {
    await page.click("#select-all");
    await page.waitForSelector("#selection-note:text-is('1,300 selected')");
    await page.click("#delete-selected");
    await page.waitForSelector("#confirm[open] #confirm-title:text-is('Delete the whole garden?')");
    await inspect(page, "delete-garden");
    // The focused button and Escape mean no, and the selection stays.
    await page.keyboard.press("Enter");
    await page.waitForSelector("#confirm", { state: "hidden" });
    await page.click("#delete-selected");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#confirm", { state: "hidden" });
    expect(await page.textContent("#selection-note")).toBe("1,300 selected");
    await select(page, "Plant 1");
    await page.click("#delete-selected");
    await page.click("#confirm-yes:text-is('Delete 1,299 plants')");
    await page.waitForSelector("#undo:has-text('1,299 plants were deleted.')");
    expect(await stored()).toEqual(["Plant 1"]);
  },
);

testGarden(
  "an import is chosen, seen, done and undone in four steps, and changes plants only if asked to",
  { plants: [{ name: "Acer", tag: "hall" }, { name: "Betula" }] },
  async ({ page, store, stored }) => {
    await page.click("#open-import");
    const choosing = page.waitForEvent("filechooser");
    await inspect(page, "import-format");
    await page.click("#import-next:text-is('Choose a file')");
    const buffer = Buffer.from("id,name,tag\n1,Acer rubrum,pond\n,Carex,\n,Betula,\n");
    await (await choosing).setFiles({ name: "plants.csv", mimeType: "text/csv", buffer });
    await page.waitForSelector("#import-next:text-is('Add 1 plant'):focus");
    expect(await page.locator("#import-rows div").allTextContents()).toEqual([
      "1Acer → Acer rubrum (tag hall → pond)",
      "newCarex ",
    ]);
    await page.check("#import-changes");
    await inspect(page, "import-preview");
    expect(await stored()).toEqual(["Acer", "Betula"]);
    await page.click("#import-next:text-is('Add 1 and change 1 plant')");
    await page.waitForSelector("#import-undo");
    expect(await stored()).toEqual(["Acer rubrum", "Betula", "Carex"]);
    // The page offers it in one place.
    expect(await page.locator("#undo").count()).toBe(0);
    await inspect(page, "import-done");
    await page.click("#import-undo");
    await page.waitForSelector("#import-note:has-text('1 plant deleted, 1 plant changed back.')");
    expect(await stored()).toEqual(["Acer", "Betula"]);
    expect((await store.get(1)).tag).toBe("hall");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#import", { state: "detached" });
  },
);

testGarden(
  "a file that is dropped on the page is shown as an import",
  { plants: [{ name: "Acer" }] },
  async ({ page }) => {
    const transfer = await page.evaluateHandle(() => {
      const data = new DataTransfer();
      data.items.add(new File(["name\nCarex\n"], "list.csv"));
      return data;
    });
    await page.dispatchEvent("#rows .row", "dragover", { dataTransfer: transfer });
    await page.waitForSelector(".drop");
    await page.dispatchEvent("#rows .row", "drop", { dataTransfer: transfer });
    await page.waitForSelector("#import-next:text-is('Add 1 plant')");
    expect(await page.textContent("#import-title")).toBe("Import “list.csv”");
    expect(await page.locator(".drop").count()).toBe(0);
  },
);

/** Pastes text from the clipboard into what has the focus. */
async function paste(page: Page, text: string): Promise<void> {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.evaluate((pasted) => navigator.clipboard.writeText(pasted), text);
  await page.keyboard.press("Control+v");
}

testGarden(
  "a list of names is added with a paste and Enter, into the name field, too",
  { plants: [{ name: "Acer" }] },
  async ({ page, stored }) => {
    await page.waitForSelector("#rows .row");
    await paste(page, "Betula\nCarex\n");
    await page.waitForSelector("#import-next:text-is('Add 2 plants'):focus");
    expect(await stored()).toEqual(["Acer"]);
    await page.keyboard.press("Enter");
    await waitForCount(page, "3 plants");
    await page.keyboard.press("Escape");
    await page.keyboard.press("n");
    await page.waitForSelector("#add-name:focus");
    await paste(page, "Dahlia\tbed\r\nErica\t\r\n");
    await page.waitForSelector("#import-next:text-is('Add 2 plants'):focus");
    expect(await page.locator("#import-rows dd").allTextContents()).toEqual([
      "Dahlia bed",
      "Erica ",
    ]);
    expect(await page.inputValue("#add-name")).toBe("");
  },
);

testGarden(
  "one line is pasted into its field, without the line break of a spreadsheet's cell",
  { plants: [{ name: "Acer" }] },
  async ({ page }) => {
    await page.waitForSelector("#rows .row");
    await page.keyboard.press("n");
    await page.waitForSelector("#add-name:focus");
    await paste(page, "Betula\r\n");
    expect(await page.inputValue("#add-name")).toBe("Betula");
    await page.focus("#filter");
    await paste(page, "two\nlines");
    expect(await page.locator("#import").count()).toBe(0);
  },
);

testGarden(
  "the menu behind the user's name says whose token it is, and how a colleague gets one",
  {},
  async ({ page, user }) => {
    await page.click(`#open-me:has-text('${user}')`);
    expect(await page.locator("#me dd").allTextContents()).toEqual([
      ...[user, user],
      "read and write, never expires",
    ]);
    expect(await page.textContent("#invitation")).toBe(
      `plantstore token create NAME --garden ${user}`,
    );
    await inspect(page, "me");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#me", { state: "hidden" });
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
    await importFile(page, "id,name", "7,Acer", ",Betula");
    const underWay = page.waitForRequest("**/plants/bulk");
    await page.click("#import-next:text-is('Add 2 plants')");
    await underWay;
    await page.click("#import-next:text-is('Stop')");
    await page.waitForSelector("#import-note:text-is('Stopping…')");
    await page.waitForSelector("#import-next:text-is('Stop now'):focus");
    await inspect(page, "import-stopping");
    isLooked.resolve();
    await page.waitForSelector("#import-note:has-text('Stopped. Added 1 plant in ')");
    expect(await stored()).toEqual(["Acer"]);
    await page.click("#import-undo");
    await page.waitForSelector("#import-note:has-text('The import was undone: 1 plant deleted.')");
    expect(await stored()).toEqual([]);
  },
);
