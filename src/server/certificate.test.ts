/** When the log warns of a certificate that is about to expire. */
import { expect, test } from "bun:test";
import { createLog } from "../log.ts";
import { type Certificate, warnOfExpiry } from "./certificate.ts";

const dayMs = 86_400_000;
const endMs = Date.UTC(2030, 0, 31);

/** What it logs of a certificate that lived `lifetimeDays` and has `leftDays` left. */
function logged(lifetimeDays: number, leftDays: number): string {
  let written = "";
  const log = createLog("json", (lines) => {
    written += lines;
  });
  const expires = new Date(endMs).toISOString();
  const certificate: Certificate = { cert: "", key: "", expires, lifetimeMs: lifetimeDays * dayMs };
  warnOfExpiry(certificate, log, endMs - leftDays * dayMs);
  log.flush();
  if (written === "") return "nothing";
  const { level, event, days } = JSON.parse(written);
  return `${level}: ${event} ${days}`;
}

test.each([
  [90, 14, "nothing"],
  [90, 13.9, "warn: certificate expires soon 13"],
  [90, 0.1, "warn: certificate expires soon 0"],
  [90, 0, "error: certificate has expired undefined"],
  [90, -3, "error: certificate has expired undefined"],
  [6, 2, "nothing"],
  [6, 1.9, "warn: certificate expires soon 1"],
])("a certificate of %d days with %d left: %s", (lifetimeDays, leftDays, expected) => {
  expect(logged(lifetimeDays, leftDays)).toBe(expected);
});
