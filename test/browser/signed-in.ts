/** A service with gardens in it, and pages of its console that somebody has signed in to. */
import type { BrowserContextOptions, Page } from "playwright-core";
import { insist, type RunningService, runProgram } from "../end-to-end/running-service.ts";
import { type OpenPage, openPage } from "./browser.ts";

let gardens = 0;

export interface Gardener {
  readonly garden: string;
  readonly token: string;
}

/** Somebody with a garden of their own, by a token from the command line. */
export async function makeGardener(
  service: RunningService,
  flags: readonly string[] = [],
  garden = `garden-${++gardens}`,
): Promise<Gardener> {
  const args = ["token", "create", garden, "--database", service.database, ...flags];
  const { out, errors } = await runProgram(args);
  if (!out.startsWith("plant_")) throw new Error(errors);
  return { garden, token: out.trim() };
}

export async function revokeTokens(service: RunningService, garden: string): Promise<void> {
  const listed = await runProgram(["token", "list", "--json", "--database", service.database]);
  for (const { id, user } of JSON.parse(listed.out)) {
    if (user === garden) await runProgram(["token", "revoke", id, "--database", service.database]);
  }
}

/** Puts plants into a garden, many at a time. */
export async function sow(
  service: RunningService,
  token: string,
  plants: readonly { name: string; tag?: string; id?: number }[],
): Promise<void> {
  const atOnce = 200;
  for (let index = 0; index < plants.length; index += atOnce) {
    // With ids, because those that are assigned to requests of one moment come in any order.
    const bodies = plants
      .slice(index, index + atOnce)
      .map((plant, offset) => JSON.stringify({ id: index + offset + 1, ...plant }));
    const calls = bodies.map((body) => insist(() => service.call("POST /plants", { token, body })));
    for (const response of await Promise.all(calls)) {
      if (response.status !== 201) throw new Error(await response.text());
    }
  }
}

/** The names of the plants that the service has, by id. */
export async function harvest(service: RunningService, token: string): Promise<string[]> {
  const plants = await (await service.call("GET /plants", { token })).json();
  return plants.map(({ name }: { name: string }) => name);
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.fill("#token", token);
  await page.click("#sign-in-button");
  await page.waitForSelector("#garden:not([hidden])");
}

export async function openGarden(
  service: RunningService,
  token: string,
  options?: BrowserContextOptions,
): Promise<OpenPage> {
  const watched = await openPage(`${service.url}/`, options);
  await signIn(watched.page, token);
  return watched;
}

/** The names that the page shows now, in its order. */
export function shownNames(page: Page): Promise<string[]> {
  return page.locator("#rows .name").allTextContents();
}

export const someplants = [
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
