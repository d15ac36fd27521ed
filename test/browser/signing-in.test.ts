/** Signing in to the console, in a real browser: who gets in, and what is kept of a token. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { makeToken } from "../../src/auth/opaque-token.ts";
import { type RunningService, startService, waitFor } from "../end-to-end/running-service.ts";
import { inspect, isBrowserMissing, openPage, watchPages } from "./browser.ts";
import { makeGarden, openGarden, revokeTokens, signIn, somePlants } from "./signed-in.ts";

watchPages();
let service: RunningService;
beforeAll(async () => {
  // Each thread hears of a revocation by itself, and a page may have another one than the test.
  service = await startService({ args: ["--threads", "1"] });
});
afterAll(() => service?.[Symbol.asyncDispose]());

describe.skipIf(isBrowserMissing)("signing in", () => {
  test("asks for a token, and says what is wrong with one that is refused", async () => {
    await using opened = await openPage(`${service.url}/`);
    const { page } = opened;
    await inspect(page, "sign-in");
    await page.click("#sign-in-button");
    expect(await page.textContent("#token-error")).toBe("Paste a token first.");
    const notWhole = "This is not a whole token. Copy all of it again.";
    for (const token of ["plant_ş", "a b", makeToken().slice(0, -1), `plant_${"x".repeat(49)}`]) {
      await page.fill("#token", token);
      await page.click("#sign-in-button");
      expect(await page.textContent("#token-error")).toBe(notWhole);
    }
    await page.fill("#token", makeToken());
    await page.click("#sign-in-button");
    const refused =
      "Plant Store doesn’t accept this token. It may be mistyped, expired or revoked.";
    await page.waitForSelector(`#token-error:text-is("${refused}")`);
    expect(await page.getAttribute("#token", "aria-invalid")).toBe("true");
    await inspect(page, "sign-in-refused");
    await page.focus("#token");
    await page.keyboard.type("y");
    expect(await page.textContent("#token-error")).toBe("");
    expect(await page.getAttribute("#token", "aria-invalid")).toBe("false");
  });

  test("takes a token as it was copied: with blanks, quotes, its header or its variable", async () => {
    const token = await makeGarden(service);
    await using opened = await openPage(`${service.url}/`);
    const { page } = opened;
    for (const text of [
      `  Bearer  ${token}\t`,
      `Authorization: Bearer ${token}`,
      `export PLANTSTORE_TOKEN=${token}`,
      ` PLANTSTORE_TOKEN="${token}" `,
      `'${token}'`,
    ]) {
      await signIn(page, text);
      await page.click("#sign-out");
      await page.waitForSelector("#sign-in:not([hidden])");
    }
  });

  test("keeps the token out of the address, and forgets it on reload", async () => {
    const token = await makeGarden(service);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    expect(page.url()).toBe(`${service.url}/`);
    const kept = () =>
      page.evaluate(() => JSON.stringify([{ ...sessionStorage, ...localStorage }]));
    expect(await kept()).toBe("[{}]");
    expect(await page.inputValue("#token")).toBe("");
    await page.reload();
    expect(await page.isVisible("#token")).toBe(true);
  });

  test("says so when something other than the service responds", async () => {
    await using opened = await openPage(`${service.url}/`);
    const { page } = opened;
    const body = "<html>Sign in</html>";
    await page.route(/\/(?:me|plants)\b/, (route) =>
      route.fulfill({ contentType: "text/html", body }),
    );
    await page.fill("#token", "somebody");
    await page.click("#sign-in-button");
    await page.waitForSelector("#token[aria-invalid=true]");
    const error = await page.textContent("#token-error");
    expect(error).toBe("Something other than the service responded, with status 200.");
  });

  test("works in a browser that stores nothing", async () => {
    const token = await makeGarden(service);
    await using opened = await openPage(`${service.url}/`, { isFresh: true });
    const { page } = opened;
    await page.addInitScript(() => {
      const get = () => {
        throw new DOMException("Access is denied.", "SecurityError");
      };
      Object.defineProperty(window, "sessionStorage", { get });
    });
    await page.reload();
    await page.check("#keep-token");
    await signIn(page, token);
    await page.click("#sign-out");
    await page.waitForSelector("#sign-in:not([hidden])");
  });

  test("keeps the token across reloads if asked to, until signing out", async () => {
    const token = await makeGarden(service, somePlants);
    await using opened = await openPage(`${service.url}/`);
    const { page } = opened;
    await page.check("#keep-token");
    await signIn(page, token);
    await page.reload();
    await page.waitForSelector("#rows .row");
    await page.click("#sign-out");
    expect(await page.isVisible("#token")).toBe(true);
    expect(await page.locator("#rows .row").count()).toBe(0);
    await page.reload();
    expect(await page.isVisible("#token")).toBe(true);
  });

  test("is asked for again, with the reason, when the token is revoked, and nothing is kept", async () => {
    const token = await makeGarden(service, somePlants);
    await using opened = await openGarden(service, token);
    const { page } = opened;
    await page.waitForSelector("#rows .row");
    await revokeTokens(service);
    await waitFor(async () =>
      (await service.call("GET /plants", { token })).status === 401 ? true : undefined,
    );
    await page.click("#open-add");
    await page.fill("#add-name", "Hedera helix");
    await page.click("#add-button");
    await page.waitForSelector("#sign-in-reason:not([hidden])");
    expect(await page.textContent("#sign-in-reason")).toContain("expired or was revoked");
    expect(await page.isVisible("#garden")).toBe(false);
    expect(await page.textContent("#garden")).not.toContain("Monstera");
    expect(await page.inputValue("#add-name")).toBe("");
    await inspect(page, "expired");
  });
});
