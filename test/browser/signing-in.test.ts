/** Signing in to the console, in a real browser: who gets in, and what is kept of a token. */
import { describe, expect } from "bun:test";
import { makeToken } from "../../src/auth/opaque-token.ts";
import { waitFor } from "../end-to-end/running-service.ts";
import { inspect, takePicture } from "./browser.ts";
import {
  makeGarden,
  openCard,
  revokeTokens,
  signIn,
  signOut,
  somePlants,
  useConsole,
} from "./signed-in.ts";

// Each thread hears of a revocation by itself, and a page may have another one than the test.
const testGarden = useConsole(["--threads", "1"]);
const isSignedIn = false;

describe("signing in", () => {
  testGarden("asks for a token, and says what is wrong", { isSignedIn }, async ({ page }) => {
    await takePicture(page, "sign-in");
    await page.click("#sign-in-button");
    expect(await page.textContent("#token-error")).toBe("Paste a token first.");
    const notWhole = "This is not a whole token. Copy all of it again.";
    const mistyped = "This has a typo: its checksum doesn't match. Copy it again.";
    for (const [token, error] of [
      ["plant_ş", notWhole],
      ["a b", notWhole],
      [makeToken().slice(0, -1), notWhole],
      [`plant_${"x".repeat(49)}`, mistyped],
    ] as const) {
      await page.fill("#token", token);
      await page.click("#sign-in-button");
      expect(await page.textContent("#token-error")).toBe(error);
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

    // From a proxy that wants people to sign in.
    const signInPage = { contentType: "text/html", body: "<html>Sign in</html>" };
    await page.route(/\/(?:me|plants)\b/, (route) => route.fulfill(signInPage));
    await page.fill("#token", "somebody");
    await page.click("#sign-in-button");
    await page.waitForSelector("#token[aria-invalid=true]");
    const error = await page.textContent("#token-error");
    expect(error).toBe("Something other than the service responded, with status 200.");
  });

  testGarden(
    "takes a token as it was copied, and keeps it across reloads only if asked to",
    { plants: somePlants, isSignedIn },
    async ({ page, token, service }) => {
      for (const text of [
        `  Bearer  ${token}\t`,
        `Authorization: Bearer ${token}`,
        `export PLANTSTORE_TOKEN=${token}`,
        ` PLANTSTORE_TOKEN="${token}" `,
        `'${token}'`,
      ]) {
        await signIn(page, text);
        expect([page.url(), await page.inputValue("#token")]).toEqual([`${service.url}/`, ""]);
        expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
        await page.reload();
        expect(await page.isVisible("#token")).toBe(true);
      }
      await page.check("#keep-token");
      await signIn(page, token);
      await page.reload();
      await page.waitForSelector("#rows .row");
      await signOut(page);
      expect(await page.locator("#rows .row").count()).toBe(0);
      await page.reload();
      expect(await page.isVisible("#token")).toBe(true);
    },
  );

  testGarden(
    "is asked for again, with the reason, when the token is revoked, and then finishes what was begun",
    { plants: somePlants, isFresh: true },
    async ({ page, service, call, token: firstToken }) => {
      // Without them, nothing but the click can find out that the token is revoked.
      await page.route("**/events*", (route) => route.abort());
      const { user } = await (await call("GET /me")).json();
      let token = firstToken;
      const signInAgain = async (name: string) => {
        token = await makeGarden(service, [], { user: name, garden: user });
        await signIn(page, token);
      };
      const isRefused = async () => (await service.call("GET /me", { token })).status === 401;
      const expire = async (button: string) => {
        await revokeTokens(service);
        await waitFor(async () => (await isRefused()) || undefined);
        await page.click(button);
        await page.waitForSelector("#sign-in-reason:not([hidden])");
      };
      await page.click("#open-add");
      await page.fill("#add-name", "Hedera helix");
      await expire("#add-button");
      expect(await page.textContent("#sign-in-reason")).toContain("expired or was revoked");
      expect(await page.isVisible("#garden")).toBe(false);
      await inspect(page, "expired");
      // The request that was refused goes on, with any token to the same garden.
      await signInAgain("carol");
      await page.waitForSelector("#notice:has-text('“Hedera helix” was added')");

      await openCard(page, "Hedera helix");
      await page.click("#plant-edit");
      await page.fill("#edit-tag", "wall");
      await expire("#edit-save");
      await signInAgain(user);
      await page.waitForSelector("#notice:has-text('“Hedera helix” was saved')");

      // Somebody else must sign out first, and finds nothing of it.
      await page.fill("#add-name", "Acer");
      await expire("#add-button");
      const other = await makeGarden(service);
      await page.fill("#token", other);
      await page.click("#sign-in-button");
      await page.waitForSelector("#token-error:has-text('another garden')");
      await signOut(page);
      await signIn(page, other);
      expect(await page.inputValue("#add-name")).toBe("");
    },
  );
});
