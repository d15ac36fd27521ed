/** A real Chromium for the tests, and pages in it that notice what a user should never meet. */
import { expect } from "bun:test";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { skipsUnless } from "../../testing/skipping.ts";

const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const pictures = join(import.meta.dir, "../.output/screenshots");

/** The address of the browser that all test files share, or why there is none. */
const { PLANTSTORE_TEST_BROWSER: endpoint = "npm run test:all starts one" } = process.env;
const browser = endpoint.startsWith("ws:") ? await chromium.connect(endpoint) : undefined;

/** If so, the tests of pages are skipped. */
export const isBrowserMissing = skipsUnless(browser !== undefined, `no browser: ${endpoint}`);

/** The only hosts that pages may call. */
const ownHosts = ["127.0.0.1", "[::1]", "localhost"];

/** Refusals of the API are part of some tests; the browser reports each as an error of its own. */
const refusal = /^Failed to load resource: (?:the server responded with a status of|net::ERR_)/;

/** What pages must not do, but did: log errors, call other hosts, violate their policy. */
const troubles: string[] = [];

/**
 * By their options. Opening a page takes several times as long as loading another address, so tests
 * share pages.
 */
const idlePages = new Map<string, Page>();

/**
 * Runs a test in a page. Fails if the page, or one that it opens, logs errors, calls other hosts or
 * violates its content security policy.
 */
export async function withPage(
  options: BrowserContextOptions,
  run: (page: Page) => Promise<void>,
): Promise<void> {
  const key = JSON.stringify(options);
  const page = idlePages.get(key) ?? (await makePage(options));
  idlePages.delete(key);
  await page.mouse.move(0, 0);
  // Those of a test that failed are its own.
  troubles.length = 0;
  await run(page);
  await page.evaluate(() => sessionStorage.clear());
  idlePages.set(key, page);
  expect(troubles).toEqual([]);
}

async function makePage(options: BrowserContextOptions): Promise<Page> {
  if (!browser) throw new Error("There is no browser.");
  const context = await browser.newContext({
    viewport: { width: 1280, height: 860 },
    reducedMotion: "reduce",
    ...options,
  });
  // A deadline, not a measure: the machine may be busy.
  context.setDefaultTimeout(60_000);
  context.on("weberror", (webError) => troubles.push(`error: ${webError.error().message}`));
  context.on("console", (message) => {
    const isRefusal =
      refusal.test(message.text()) && /\/(?:plants|me|tags|events)\b/.test(message.location().url);
    if (["error", "warning"].includes(message.type()) && !isRefusal) troubles.push(message.text());
  });
  context.on("request", (request) => {
    const { hostname, protocol } = new URL(request.url());
    if (protocol !== "data:" && !ownHosts.includes(hostname)) troubles.push(request.url());
  });
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
      setTimeout(() => {
        throw new Error(`policy: ${violatedDirective} ${blockedURI}`);
      });
    });
  });
  return context.newPage();
}

/**
 * Fails if axe finds accessibility violations on the page, in light or in dark colors. Takes a
 * picture of each if they are wanted. Costs a second, so call it for what no other test shows.
 */
export async function expectAccessible(page: Page, pictureName: string): Promise<void> {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axeSource);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await takePicture(page, `${pictureName}-${colorScheme}`);
    // Only the contrast depends on the colors.
    const rules = colorScheme === "light" ? undefined : ["color-contrast"];
    const violations = await page.evaluate(async (runOnly) => {
      const { axe } = globalThis as unknown as { axe: typeof import("axe-core") };
      const options = { resultTypes: ["violations" as const], preload: false };
      return (await axe.run({ ...options, ...(runOnly && { runOnly }) })).violations;
    }, rules);
    const barriers = violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`),
    );
    expect(barriers, `${pictureName} in ${colorScheme} colors`).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: null });
}

/** Only with `PLANTSTORE_TEST_SCREENSHOTS=1`. Pictures are for people; no test compares them. */
export async function takePicture(page: Page, name: string): Promise<void> {
  if (process.env.PLANTSTORE_TEST_SCREENSHOTS !== "1") return;
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`) });
}
