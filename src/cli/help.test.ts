/** What the help of a command shows. */
import { describe, expect, test } from "bun:test";
import type { Command } from "./command.ts";
import { renderHelp, renderOverview } from "./help.ts";

const water: Command = {
  name: "water",
  summary: "Water a plant. It likes that, but for the cactus, which likes it but once in a while.",
  words: ["PLANT"],
  flags: {
    amount: { placeholder: "LITRES", help: "how much", fallback: "a cup" },
    gently: { help: "without splashing" },
  },
  settings: ["database", "databaseStatementTimeoutMs", "basePath"],
  variables: { WATERING_CAN: "which one to take" },
  examples: ["plantstore water fern --gently"],
  run: async () => 0,
};

function widest(text: string): number {
  return Math.max(...text.split("\n").map(({ length }) => length));
}

describe("the help of a command", () => {
  const help = renderHelp(water);

  test("shows the default of a flag, and the variable of a setting", () => {
    expect(help).toContain("how much [default a cup]");
    expect(help).toContain("[PLANTSTORE_DATABASE,\n");
    expect(help).toContain("[PLANTSTORE_BASE_PATH]");
  });

  test("wraps lines between words at 80 columns", () => {
    expect(widest(help)).toBeGreaterThan(70);
    expect(widest(help)).toBeLessThanOrEqual(80);
    expect(help).toContain("  --gently                  without splashing\n");
  });
});

test("the overview shows the first sentence about each command, by what it is for", () => {
  const overview = renderOverview({ Care: [water], Harm: [{ ...water, name: "forget" }] });
  expect(overview).toMatch(/\nCare:\n {2}water PLANT +Water a plant\.\n\nHarm:\n {2}forget PLANT /);
  expect(overview).not.toContain("cactus");
});
