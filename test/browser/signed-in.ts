/** A service with gardens in it, and pages of its console that somebody has signed in to. */
import { afterAll, test } from "bun:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { issueToken, type NewToken } from "../../src/auth/opaque-token.ts";
import { openStorage } from "../../src/storage/open.ts";
import { serveHere } from "../end-to-end/running-service.ts";
import { create } from "../storage/tested-storage.ts";
import { isBrowserMissing, withPage } from "./browser.ts";

let gardens = 0;

type Service = Awaited<ReturnType<typeof serveHere>>;

interface NewPlant {
  readonly name: string;
  readonly tag?: string;
  /** One more than that of the plant before it, unless it is given. */
  readonly id?: number | bigint;
}

/** A token to a garden of its own, unless another is named, that holds these plants. */
export async function makeGarden(
  service: Service,
  plants: readonly NewPlant[] = [],
  token: Partial<NewToken> = {},
): Promise<string> {
  const user = `garden-${++gardens}`;
  const { garden = user } = token;
  const writes = plants.map(({ id, ...plant }, index) =>
    create({ garden, id: BigInt(id ?? index + 1), ...plant }),
  );
  // Next to the service, as commands do.
  const storage = await openStorage(service.database, { isServing: false });
  await storage.apply(writes);
  const issued = await issueToken(storage, { user, ...token }, Date.now());
  await storage.close();
  return issued.token;
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.fill("#token", token);
  await page.click("#sign-in-button");
  await page.waitForSelector("#garden:not([hidden]):not(:has(#loading))");
}

/** What a test of the console has: a garden of its own, and the page that shows it. */
export interface OpenGarden {
  readonly service: Service;
  readonly page: Page;
  readonly token: string;
  /** Somebody else changes the garden. */
  call(request: string, plant?: object): Promise<Response>;
  /** The names of the plants that the service has, by id. */
  stored(): Promise<string[]>;
}

interface GardenOptions extends BrowserContextOptions {
  readonly plants?: readonly NewPlant[];
  readonly access?: Partial<NewToken>;
  /** Unless the test signs in by itself. */
  readonly isSignedIn?: boolean;
}

/** The tests of a file share a service. Returns what makes such a test. */
export function useConsole() {
  const serving = serveHere({ "base-path": "/garden/v1" });
  afterAll(async () => (await serving)[Symbol.asyncDispose]());

  return (name: string, options: GardenOptions, run: (garden: OpenGarden) => Promise<void>) => {
    const { plants, access, isSignedIn = true, ...pageOptions } = options;
    const runTest = async () => {
      const service = await serving;
      const token = await makeGarden(service, plants, access);
      const call: OpenGarden["call"] = (request, plant) =>
        service.call(request, { token, ...(plant && { body: JSON.stringify(plant) }) });
      const stored = async () => {
        const listed: { name: string }[] = await (await call("GET /plants")).json();
        return listed.map((plant) => plant.name);
      };
      await withPage(`${service.url}/`, pageOptions, async (page) => {
        if (isSignedIn) await signIn(page, token);
        await run({ service, page, token, call, stored });
      });
    };
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

/** The names that the page shows now, in its order. */
export function shownNames(page: Page): Promise<string[]> {
  return page.locator("#rows .name").allTextContents();
}

export async function openCard(page: Page, name: string): Promise<void> {
  await page.click(`.row:has-text('${name}')`);
  await page.waitForSelector("#plant[open]");
}

/** Deletes plants one by one. Each deletion has been sent when this returns. */
export async function deletePlants(page: Page, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await openCard(page, name);
    await page.click("#plant-delete");
    await page.waitForSelector(`#undo:has-text('“${name}” was deleted.')`);
  }
}

/** Waits for the title, which says how many plants are shown. */
export async function waitForTitle(page: Page, title: string): Promise<void> {
  await page.waitForSelector(`#garden-title:text-is('${title}')`);
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
