/** Tests of the console's page, signed in to a garden, and the steps that many of them take. */
import { afterAll, test } from "bun:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { type PlantDraft, PlantStore } from "../../client/plant-store.ts";
import { storageKey } from "../../console/shared-token.ts";
import type { NewToken } from "../../src/auth/opaque-token.ts";
import { openGarden, serveHere } from "../../testing/running-service.ts";
import { isBrowserMissing, withPage } from "./browser.ts";

const loadedGarden = "#garden:not([hidden]):not(:has(#loading))";

let users = 0;

/** A client with a new token, to a garden of its own unless `grant` names another. */
export async function makeClient(
  service: Awaited<ReturnType<typeof serveHere>>,
  grant: Partial<NewToken> = {},
) {
  const user = `user-${++users}`;
  const { token } = await openGarden(service, { user, ...grant });
  return { user, token, store: new PlantStore({ url: service.url, token }) };
}

interface PageOptions extends BrowserContextOptions {
  /** What the garden has from the start, with the ids 1, 2 and so on. */
  readonly plants?: readonly PlantDraft[];
  /** True by default. Otherwise the test starts at the form for the token. */
  readonly isSignedIn?: boolean;
}

/** What a test of a page gets. */
export interface OpenGarden extends Awaited<ReturnType<typeof makeClient>> {
  readonly service: Awaited<ReturnType<typeof serveHere>>;
  /** Shows a garden that no other test uses. Its name is that of its `user`. */
  readonly page: Page;
  /** The names of the plants that the service has, by id. */
  storedNames(): Promise<string[]>;
}

/**
 * Starts the service that the tests of a file share, and returns what such a test is made with: like
 * `test`, but with a page that is signed in to a new garden. The test also fails if its page logs
 * errors, calls other hosts or violates its content security policy.
 */
export function useConsole() {
  const serving = serveHere({ "base-path": "/garden/v1" });
  afterAll(async () => (await serving)[Symbol.asyncDispose]());

  return (name: string, options: PageOptions, run: (garden: OpenGarden) => Promise<void>) => {
    const { plants = [], isSignedIn = true, ...pageOptions } = options;
    const runTest = () =>
      withPage(pageOptions, async (page) => {
        const service = await serving;
        const client = await makeClient(service);
        await client.store.createMany(plants);
        const storedNames = () => Array.fromAsync(client.store.list(), (plant) => plant.name);
        if (isSignedIn) await openSignedIn(page, service.url, client.token);
        else await page.goto(`${service.url}/`);
        await run({ ...client, service, page, storedNames });
      });
    // A browser on a busy machine takes its time.
    test.skipIf(isBrowserMissing)(name, runTest, 300_000);
  };
}

/** Opens the console with a token that the tab has kept, which is faster than the form. */
async function openSignedIn(page: Page, url: string, token: string): Promise<void> {
  if (!page.url().startsWith(url)) await page.goto(`${url}/healthz`);
  const kept = { key: storageKey, token };
  await page.evaluate(({ key, token }) => sessionStorage.setItem(key, token), kept);
  await page.goto(`${url}/`);
  await page.waitForSelector(loadedGarden);
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.fill("#token", token);
  await page.click("#sign-in-button");
  await page.waitForSelector(loadedGarden);
}

export async function signOut(page: Page): Promise<void> {
  await page.click("#open-me");
  await page.click("#sign-out");
  await page.waitForSelector("#sign-in:not([hidden])");
}

/** The names that the page shows now, in its order. The row that is being edited has none. */
export function shownNames(page: Page): Promise<string[]> {
  return page.locator("#rows .row > .name").allTextContents();
}

/** Waits until the page says how many plants are shown: `12 plants`. */
export async function waitForCount(page: Page, count: string): Promise<void> {
  await page.locator("#garden-note", { hasText: new RegExp(`^${count}\\b`) }).waitFor();
}

/** Opens the fields of a plant in its row, with a click on its name. */
export async function openEditor(page: Page, name: string): Promise<void> {
  await page.click(`#rows .row:has-text('${name}') > .name`);
  await page.waitForSelector("#edit-name:focus");
}

/** Checks the boxes of plants. */
export async function selectPlants(page: Page, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await page.click(`#rows .row:has-text('${name}') .box`);
    await page.waitForSelector(`#rows .row:has-text('${name}') .box :checked`);
  }
}

/** Unchecks the box of a plant. */
export async function deselectPlant(page: Page, name: string): Promise<void> {
  await page.click(`#rows .row:has-text('${name}') .box`);
  await page.waitForSelector(`#rows .row:has-text('${name}') .box :not(:checked)`);
}

export function selectedNames(page: Page): Promise<string[]> {
  return page.locator("#rows .row:has(:checked) > .name").allTextContents();
}

/** Deletes plants one by one. Each deletion has been sent when this returns. */
export async function deletePlants(page: Page, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await openEditor(page, name);
    await page.click("#plant-delete");
    await page.waitForSelector(`#undo:has-text('“${name}” was deleted.')`);
  }
}

/** Chooses a CSV file to import, which the page then previews. */
export async function chooseImportFile(page: Page, ...lines: readonly string[]): Promise<void> {
  const buffer = Buffer.from(lines.join("\n"));
  await page.setInputFiles("#import-file", { name: "plants.csv", mimeType: "text/csv", buffer });
}

/** Waits for the file that a click makes the page download. */
export async function download(page: Page, selector: string) {
  const downloading = page.waitForEvent("download");
  await page.click(selector);
  const file = await downloading;
  const chunks = await Array.fromAsync(await file.createReadStream());
  return { name: file.suggestedFilename(), text: Buffer.concat(chunks).toString() };
}

/** With the ids 1 to 12. Listed by name, Acer is the first and Thymus the last. */
export const twelvePlants = [
  { name: "Monstera deliciosa", tag: "living room" },
  { name: "Ficus lyrata", tag: "living room" },
  { name: "Dryopteris filix-mas", tag: "shade" },
  { name: "Rosmarinus officinalis", tag: "herbs" },
  { name: "Ocimum basilicum", tag: "herbs" },
  { name: "Thymus vulgaris", tag: "herbs" },
  { name: "Salvia officinalis", tag: "herbs" },
  { name: "Acer palmatum ‘Bloodgood’" },
  { name: "Lavandula angustifolia", tag: "terrace" },
  { name: "Olea europaea", tag: "terrace" },
  { name: "Phalaenopsis amabilis", tag: "bathroom" },
  { name: "Aloë vera", tag: "kitchen" },
];
