/** A Chromium that can't be used counts as missing, and the tests say why. */
import { expect, test } from "bun:test";
import { startChromium } from "./chromium.ts";

test("a Chromium that doesn't start is reported with its reason", async () => {
  const failing = await startChromium({ PLANTSTORE_TEST_CHROMIUM: "/bin/false" });
  expect(failing).toStartWith("Chromium (/bin/false) can't be used: ");
});
