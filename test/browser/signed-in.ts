/** A service with gardens in it, and pages of its console that somebody has signed in to. */
import { afterAll, test } from "bun:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { type PlantDraft, PlantStore } from "../../client/plant-store.ts";
import type { NewToken } from "../../src/auth/opaque-token.ts";
import { openGarden, serveHere } from "../../testing/running-service.ts";
import { isBrowserMissing, withPage } from "./browser.ts";

let users = 0;

/** A client of a garden of its own, unless another is named, and the token that it uses. */
export async function makeClient(
  service: Awaited<ReturnType<typeof serveHere>>,
  grant: Partial<NewToken> = {},
) {
  const user = `user-${++users}`;
  const { token } = await openGarden(service, { user, ...grant });
  return { user, token, store: new PlantStore({ url: service.url, token }) };
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.fill("#token", token);
  await page.click("#sign-in-button");
  await page.waitForSelector("#garden:not([hidden]):not(:has(#loading))");
}

interface GardenOptions extends BrowserContextOptions {
  /** With the ids 1, 2 and so on. */
  readonly plants?: readonly PlantDraft[];
  /** Unless the test signs in by itself. */
  readonly isSignedIn?: boolean;
}

/** What a test of the console has: a garden of its own, and the page that shows it. */
export interface OpenGarden extends Awaited<ReturnType<typeof makeClient>> {
  readonly service: Awaited<ReturnType<typeof serveHere>>;
  readonly page: Page;
  /** The names of the plants that the service has, by id. */
  stored(): Promise<string[]>;
}

/** The tests of a file share a service. Returns what makes such a test. */
export function useConsole() {
  const serving = serveHere({ "base-path": "/garden/v1" });
  afterAll(async () => (await serving)[Symbol.asyncDispose]());

  return (name: string, options: GardenOptions, run: (garden: OpenGarden) => Promise<void>) => {
    const { plants = [], isSignedIn = true, ...pageOptions } = options;
    const runTest = () =>
      withPage(pageOptions, async (page) => {
        const service = await serving;
        const client = await makeClient(service);
        await client.store.createMany(plants);
        const stored = () => Array.fromAsync(client.store.list(), (plant) => plant.name);
        await page.goto(`${service.url}/`);
        if (isSignedIn) await signIn(page, client.token);
        await run({ ...client, service, page, stored });
      });
    // A browser on a busy machine takes its time.
    test.skipIf(isBrowserMissing)(name, runTest, 300_000);
  };
}

/** A hidden page has no stream, so it hears nothing of what others do. */
export async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((value) => {
    Object.defineProperty(document, "hidden", { value, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, isHidden);
}

/** The names that the page shows now, in its order. The row that is being edited has none. */
export function shownNames(page: Page): Promise<string[]> {
  return page.locator("#rows .row > .name").allTextContents();
}

/** Opens the fields of a plant in its row. */
export async function edit(page: Page, name: string): Promise<void> {
  await page.click(`#rows .row:has-text('${name}') > .name`);
  await page.waitForSelector("#edit-name:focus");
}

/** Checks the boxes of plants. */
export async function select(page: Page, ...names: readonly string[]): Promise<void> {
  for (const name of names) await page.click(`#rows .row:has-text('${name}') .box`);
}

/** Deletes plants one by one. Each deletion has been sent when this returns. */
export async function deletePlants(page: Page, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await edit(page, name);
    await page.click("#plant-delete");
    await page.waitForSelector(`#undo:has-text('“${name}” was deleted.')`);
  }
}

/** Waits until the page says how many plants are shown: `12 plants`. */
export async function waitForCount(page: Page, count: string): Promise<void> {
  await page.locator("#garden-note", { hasText: new RegExp(`^${count}\\b`) }).waitFor();
}

export async function signOut(page: Page): Promise<void> {
  await page.click("#open-me");
  await page.click("#sign-out");
  await page.waitForSelector("#sign-in:not([hidden])");
}

/** Chooses a file of plants to import. */
export async function importFile(page: Page, ...lines: readonly string[]): Promise<void> {
  const buffer = Buffer.from(lines.join("\n"));
  await page.setInputFiles("#import-file", { name: "plants.csv", mimeType: "text/csv", buffer });
}

/** As the console sorts them. */
export function sortNames(plants: readonly PlantDraft[]): string[] {
  return plants.map(({ name }) => name).sort(new Intl.Collator("en").compare);
}

export const somePlants = [
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
