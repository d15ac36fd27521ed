/** Whether growth is told from noise. */
import { expect, test } from "bun:test";
import { makeDice } from "../dice.ts";
import { judgeGrowth, slopeOf } from "./vital-signs.ts";

const hourMs = 3_600_000;

/** Two hours, a sample every ten seconds, five megabytes up and down. */
function makeSamples(perHour: number): { atMs: number; value: number }[] {
  const dice = makeDice(7);
  return Array.from({ length: 720 }, (_, index) => {
    const atMs = (index * 2 * hourMs) / 720;
    return { atMs, value: 80 + (perHour * atMs) / hourMs + dice(1_001) / 100 - 5 };
  });
}

test("a memory that only goes up and down has a slope within its noise", () => {
  const { perHour, noise } = slopeOf(makeSamples(0));
  expect(Math.abs(perHour)).toBeLessThan(noise);
  expect(noise).toBeLessThan(1);
});

test("a leak of two megabytes an hour is seen behind the same noise", () => {
  const { perHour, noise } = slopeOf(makeSamples(2));
  expect(perHour).toBeGreaterThan(2 * noise);
  expect(perHour).toBeCloseTo(2, 0);
});

test.each([
  ["flat", { perHour: 0.5, noise: 1 }],
  ["flat", { perHour: -9, noise: 1 }],
  ["flat", { perHour: 0.1, noise: 0 }],
  ["GROWS", { perHour: 0.2, noise: 0 }],
  ["GROWS", { perHour: 1.1, noise: 1 }],
  ["GROWS", { perHour: 7, noise: 6 }],
  ["too short to tell", { perHour: 0, noise: 6 }],
  ["too short to tell", slopeOf(makeSamples(2).slice(0, 1))],
])("it is %s: %p", (growth, slope) => {
  expect(judgeGrowth(slope, 0.1, 5)).toBe(growth as never);
});
