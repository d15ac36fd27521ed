/** The settings that limit what callers may use. Both are off while nothing is set. */
import type { RateLimit, UsageLimits } from "../domain/limits.ts";
import { integerBetween, type Setting } from "./setting.ts";

const requestsMax = 1_000_000;
const windowSecondsMax = 86_400;
const plants = integerBetween(1, 999_999_999);

const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

export interface LimitSettings {
  readonly rateLimit: RateLimit | "off";
  readonly gardenPlantsMax: number | "off";
}

export const limitSettings: {
  readonly [Name in keyof LimitSettings]: Setting<LimitSettings[Name]>;
} = {
  rateLimit: {
    flag: "rate-limit",
    environment: "PLANTSTORE_RATE_LIMIT",
    placeholder: "RATE|off",
    fallback: "off",
    help: "requests of a token, such as 100/60s or 5000/h",
    parse: parseRate,
    expected: `off or a rate from 1/d to ${requestsMax}/s, such as 100/60s or 5000/h`,
  },
  gardenPlantsMax: {
    flag: "garden-plants-max",
    environment: "PLANTSTORE_GARDEN_PLANTS_MAX",
    placeholder: "NUMBER|off",
    fallback: "off",
    help: "plants that a garden may hold",
    parse: (text) => (text === "off" ? text : plants.parse(text)),
    expected: `off or ${plants.expected}`,
  },
};

type Read = <Name extends keyof LimitSettings>(name: Name) => LimitSettings[Name];

export function readUsageLimits(read: Read): UsageLimits {
  const [rate, plantsMax] = [read("rateLimit"), read("gardenPlantsMax")];
  return {
    rate: rate === "off" ? undefined : rate,
    plantsMax: plantsMax === "off" ? undefined : plantsMax,
  };
}

function parseRate(text: string): LimitSettings["rateLimit"] | undefined {
  if (text === "off") return text;
  const [, count = "", span = "", unit = ""] = /^(\d{1,7})\/(\d{0,5})([smhd])$/.exec(text) ?? [];
  const requests = Number(count);
  const windowSeconds = Number(span || "1") * (unitSeconds[unit] ?? 0);
  const isSensible =
    requests >= 1 &&
    requests <= requestsMax &&
    windowSeconds >= 1 &&
    windowSeconds <= windowSecondsMax;
  return isSensible ? { requests, windowSeconds } : undefined;
}
