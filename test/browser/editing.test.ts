/** Editing and deleting plants in their rows, while others change them, too. */
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { expectAccessible } from "./browser.ts";
import {
  deletePlants,
  openEditor,
  shownNames,
  twelvePlants,
  useConsole,
  waitForCount,
} from "./signed-in.ts";

/** Its tests also fail if the page logs errors, calls other hosts or violates its policy. */
const testPage = useConsole();

/** A hidden page has no stream, so it hears nothing of what others do. */
async function hidePage(page: Page): Promise<void> {
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { value: true, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
}

async function waitForEditedName(page: Page, name: string): Promise<void> {
  await page.waitForFunction(
    (expected) => document.querySelector<HTMLTextAreaElement>("#edit-name")?.value === expected,
    name,
  );
}

testPage(
  "a click, Tab and Enter change a plant's name and tag in its row",
  { plants: twelvePlants },
  async ({ page, store }) => {
    await openEditor(page, "Ocimum");
    await page.fill("#edit-name", "Ocimum sanctum");
    await page.keyboard.press("Tab");
    await page.waitForSelector("#edit-tag:focus");
    await page.fill("#edit-tag", "kitchen");
    await expectAccessible(page, "editing");
    await page.keyboard.press("Enter");

    await page.waitForSelector("#undo:has-text('“Ocimum sanctum” was saved.')");
    await page.waitForSelector(".opener:has-text('Ocimum sanctum'):focus");
    await page.waitForSelector(".chip:has-text('kitchen 2')");
    expect(await store.get(5)).toMatchObject({ name: "Ocimum sanctum", tag: "kitchen" });
  },
);

testPage(
  "undoing a change brings the old name and tag back",
  { plants: [{ name: "Fern", tag: "herbs" }] },
  async ({ page, store }) => {
    await openEditor(page, "Fern");
    await page.fill("#edit-name", "Tree fern");
    await page.fill("#edit-tag", "kitchen");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#undo:has-text('“Tree fern” was saved.')");
    await page.waitForSelector(".opener:has-text('Tree fern'):focus");

    await page.keyboard.press("z");

    await page.waitForSelector("#notice:has-text('The change of “Fern” was undone.')");
    expect(await store.get(1)).toMatchObject({ name: "Fern", tag: "herbs" });
  },
);

testPage(
  "undoing a change leaves alone what somebody else has changed in between",
  { plants: [{ name: "Fern" }] },
  async ({ page, store }) => {
    await openEditor(page, "Fern");
    await page.fill("#edit-name", "Royal fern");
    await store.update(1, { tag: "shade" });
    await page.keyboard.press("Enter");
    await page.waitForSelector("#undo:has-text('Somebody else’s change is in it, too.')");

    await page.keyboard.press("z");

    await page.waitForSelector("#notice:has-text('The change of “Fern” was undone.')");
    expect(await store.get(1)).toMatchObject({ name: "Fern", tag: "shade" });
  },
);

testPage(
  "a click on a tag opens its field, and typing replaces it",
  { plants: [{ name: "Ocimum basilicum", tag: "herbs" }] },
  async ({ page, store }) => {
    const tag = await page.locator("#rows .row:has-text('Ocimum') > .tag").boundingBox();
    await page.mouse.click((tag?.x ?? 0) + 5, (tag?.y ?? 0) + 5);
    await page.waitForSelector("#edit-tag:focus");

    await page.keyboard.type("kitchen");
    await page.keyboard.press("Enter");

    await page.waitForSelector("#undo:has-text('“Ocimum basilicum” was saved.')");
    expect(await store.get(1)).toMatchObject({ name: "Ocimum basilicum", tag: "kitchen" });
  },
);

testPage(
  "if a saved plant leaves the list of its tag, the title gets the focus",
  {
    plants: [
      { name: "Olea europaea", tag: "terrace" },
      { name: "Lavandula angustifolia", tag: "terrace" },
    ],
  },
  async ({ page }) => {
    await page.click(".chip:has-text('terrace')");
    await waitForCount(page, "2 plants");

    await openEditor(page, "Olea");
    await page.fill("#edit-tag", "");
    await page.click("#edit-save");

    await waitForCount(page, "1 plant");
    await page.waitForSelector("#garden-title:focus");
  },
);

testPage(
  "editing starts with what the service has, even if the page shows something older",
  { plants: [{ name: "Fern", tag: "hall" }] },
  async ({ page, store }) => {
    await hidePage(page);
    await store.put(1, { name: "Tree fern", tag: "shade" });

    await openEditor(page, "Fern");

    await waitForEditedName(page, "Tree fern");
    expect(await page.inputValue("#edit-tag")).toBe("shade");
  },
);

testPage(
  "saving over somebody else's change shows that change instead",
  { plants: [{ name: "Fern", tag: "hall" }] },
  async ({ page, store, storedNames }) => {
    await hidePage(page);
    await openEditor(page, "Fern");
    await page.fill("#edit-name", "My fern");
    await store.put(1, { name: "Royal fern" });

    await page.press("#edit-name", "Enter");

    await page.waitForSelector("#finding:has-text('→ Royal fern'):focus");
    expect(await page.textContent("#finding-text")).toMatch(
      / changed it \(\d+:\d\d [AP]M\)\. Fern → Royal fern tag hall → none/,
    );
    expect(await storedNames()).toEqual(["Royal fern"]);
    // Only they changed the tag.
    expect(await page.inputValue("#edit-tag")).toBe("");
    expect(await page.locator("#edit").ariaSnapshot()).toContain('- alertdialog "');
    await expectAccessible(page, "edit-conflict");
  },
);

testPage(
  "in a conflict, Enter saves nothing, Escape goes back to the fields, and “Save mine” saves",
  { plants: [{ name: "Fern" }] },
  async ({ page, store, storedNames }) => {
    await hidePage(page);
    await openEditor(page, "Fern");
    await page.fill("#edit-name", "My fern");
    await store.put(1, { name: "Royal fern" });
    await page.press("#edit-name", "Enter");
    await page.waitForSelector("#finding:has-text('→ Royal fern'):focus");

    await page.keyboard.press("Enter");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#edit-name:focus");
    expect(await page.inputValue("#edit-name")).toBe("My fern");
    expect(await storedNames()).toEqual(["Royal fern"]);

    // It isn't saved over a later change, either.
    await store.put(1, { name: "Theirs" });
    await page.press("#edit-name", "Enter");
    await page.waitForSelector("#finding:has-text('→ Theirs'):focus");
    expect(await storedNames()).toEqual(["Theirs"]);

    await page.click("#save-mine");
    await page.waitForSelector("#undo:has-text('“My fern” was saved.')");
    expect(await storedNames()).toEqual(["My fern"]);
  },
);

testPage(
  "Escape closes an unchanged row at once",
  { plants: [{ name: "Fern" }] },
  async ({ page }) => {
    await openEditor(page, "Fern");

    await page.keyboard.press("Escape");

    await page.waitForSelector("#edit", { state: "detached" });
  },
);

testPage(
  "Escape asks before it drops what was typed, and a second one goes back to it",
  { plants: [{ name: "Fern" }] },
  async ({ page }) => {
    await openEditor(page, "Fern");
    await page.fill("#edit-name", "Tree fern");

    await page.keyboard.press("Escape");
    await page.waitForSelector("#finding:has-text('What you typed isn’t saved.'):focus");
    await page.keyboard.press("Escape");

    await page.waitForSelector("#edit-name:focus");
    expect(await page.inputValue("#edit-name")).toBe("Tree fern");
  },
);

testPage(
  "going back or to another plant asks before it drops what was typed",
  { plants: [{ name: "Fern" }, { name: "Ivy" }] },
  async ({ page, storedNames }) => {
    await openEditor(page, "Ivy");
    await page.fill("#edit-name", "English ivy");

    await page.goBack();
    await page.click("#edit-resume");
    expect(await page.inputValue("#edit-name")).toBe("English ivy");

    await page.evaluate(() => {
      location.hash = "#plant=1";
    });
    await page.click("#edit-discard");
    await waitForEditedName(page, "Fern");
    expect(await storedNames()).toEqual(["Fern", "Ivy"]);
  },
);

testPage(
  "opening a plant that somebody deleted says so, and “Leave it deleted” closes it",
  { plants: [{ name: "Fern" }, { name: "Ivy" }] },
  async ({ page, store }) => {
    await hidePage(page);
    await store.delete(1);

    await page.click("#rows .row:has-text('Fern') > .name");
    await page.waitForSelector("#finding:has-text(' deleted it (')");
    await page.click("#keep-theirs:text-is('Leave it deleted')");

    await page.waitForSelector("#edit", { state: "detached" });
  },
);

testPage(
  "somebody who searches isn't interrupted when the opened plant is deleted",
  { plants: [{ name: "Fern" }, { name: "Ivy" }] },
  async ({ page, store }) => {
    await openEditor(page, "Fern");
    await page.focus("#filter");

    await store.delete(1);
    await page.waitForSelector("#finding:has-text(' deleted it (')");
    await page.keyboard.type("zinnia");

    expect(await page.inputValue("#filter")).toBe("zinnia");
  },
);

testPage(
  "a plant that was deleted and is back again can be edited as before",
  { plants: [{ name: "Fern" }, { name: "Ivy" }] },
  async ({ page, store, storedNames }) => {
    await openEditor(page, "Fern");
    await page.fill("#edit-name", "Tree fern");
    await store.delete(1);
    await page.waitForSelector("#finding:has-text(' deleted it (')");

    await store.put(1, { name: "Fern" });
    await page.click("#edit-save");

    await page.waitForSelector("#undo:has-text('“Tree fern” was saved.')");
    expect(await storedNames()).toEqual(["Tree fern", "Ivy"]);
  },
);

testPage(
  "the arrow key leads from the search into an opened row",
  { plants: [{ name: "Fern" }, { name: "Ivy" }] },
  async ({ page }) => {
    await openEditor(page, "Fern");

    await page.focus("#filter");
    await page.keyboard.press("ArrowDown");

    await page.waitForSelector("#edit-name:focus");
  },
);

testPage(
  "a plant that was deleted during an edit can be added again with its id",
  { plants: [{ name: "Fern" }, { name: "Ivy" }] },
  async ({ page, store, storedNames }) => {
    await hidePage(page);
    await openEditor(page, "Fern");
    await page.fill("#edit-name", "Tree fern");
    await store.delete(1);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#finding:has-text(' deleted it (')");
    await expectAccessible(page, "edit-deleted");

    await page.click("#plant-again:text-is('Add it again')");

    await page.waitForSelector("#undo:has-text('“Tree fern” was added with the id 1.')");
    expect(await storedNames()).toEqual(["Tree fern", "Ivy"]);
  },
);

testPage(
  "deleting is done at once, and undone step by step with the same ids",
  { plants: [{ name: "Fern" }, { name: "Ivy" }, { name: "Moss" }] },
  async ({ page, storedNames }) => {
    await deletePlants(page, "Ivy", "Fern");
    expect(await storedNames()).toEqual(["Moss"]);
    await expectAccessible(page, "deleting");

    await page.click("#undo-button");
    await page.waitForSelector("#notice:has-text('“Fern” is back.')");
    expect(await page.textContent("#undo-text")).toBe("“Ivy” was deleted.");

    await page.click("#undo-button");
    await page.waitForSelector("#undo", { state: "hidden" });
    expect(await shownNames(page)).toEqual(["Fern", "Ivy", "Moss"]);
    // By id: each plant has its old place.
    expect(await storedNames()).toEqual(["Fern", "Ivy", "Moss"]);
  },
);

testPage(
  "the undo key first shows an undo that was closed, and then does it",
  { plants: [{ name: "Fern" }, { name: "Ivy" }] },
  async ({ page, storedNames }) => {
    await deletePlants(page, "Fern");
    await page.click("#undo-close");

    await page.keyboard.press("z");
    await page.waitForSelector("#undo:has-text('“Fern” was deleted.')");
    expect(await storedNames()).toEqual(["Ivy"]);

    await page.keyboard.press("z");
    await page.waitForSelector("#notice:has-text('“Fern” is back.')");
    expect(await storedNames()).toEqual(["Fern", "Ivy"]);
  },
);

testPage(
  "deleting a plant that somebody changed shows the change, and can be left",
  { plants: [{ name: "Fern", tag: "hall" }, { name: "Ivy" }] },
  async ({ page, store, storedNames }) => {
    await hidePage(page);
    await openEditor(page, "Fern");
    await store.put(1, { name: "Royal fern" });

    await page.click("#plant-delete");
    await page.waitForSelector("#finding:has-text('Fern → Royal fern'):focus");
    expect(await page.textContent("#finding-text")).toContain("tag hall → none");
    // Enter deletes nothing.
    await page.keyboard.press("Enter");
    await page.click("#keep-theirs");

    await page.waitForSelector("#edit", { state: "detached" });
    expect(await shownNames(page)).toEqual(["Royal fern", "Ivy"]);
    expect(await storedNames()).toEqual(["Royal fern", "Ivy"]);
  },
);

testPage(
  "a plant that changes in the last moment is deleted only after a second decision",
  { plants: [{ name: "Fern" }, { name: "Ivy" }] },
  async ({ page, store, storedNames }) => {
    await hidePage(page);
    // By then the page has read the plant again, so only the service can notice.
    await page.route("**/plants/1", async (route) => {
      if (route.request().method() === "DELETE") await store.put(1, { name: "Last fern" });
      await route.continue();
    });
    await page.focus(".opener:has-text('Fern')");

    await page.keyboard.press("Delete");
    await page.waitForSelector("#finding:has-text('Fern → Last fern')");
    expect(await storedNames()).toEqual(["Last fern", "Ivy"]);

    await page.unroute("**/plants/1");
    await page.click("#delete-anyway");
    await page.waitForSelector("#undo:has-text('“Last fern” was deleted.')");
    expect(await storedNames()).toEqual(["Ivy"]);
  },
);
