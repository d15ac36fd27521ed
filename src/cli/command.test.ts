/** Arguments become words and flags, or one line that says what is wrong. */
import { describe, expect, test } from "bun:test";
import { type Command, readCall } from "./command.ts";
import type { Terminal } from "./terminal.ts";

const terminal: Terminal = { isStdoutTty: false, isStderrTty: false, out() {}, say() {} };

const water: Command = {
  name: "water",
  summary: "Water a plant.",
  words: ["PLANT"],
  flags: {
    amount: { placeholder: "LITRES", help: "how much" },
    gently: { help: "without splashing" },
  },
  settings: ["database", "basePath"],
  examples: ["plantstore water fern --gently"],
  run: async () => 0,
};
const rain: Command = { ...water, name: "rain", words: [] };

function refusalOf(
  command: Command,
  args: readonly string[],
): { exitCode: number; message: string } {
  try {
    readCall(command, args, terminal);
  } catch (error) {
    return error as { exitCode: number; message: string };
  }
  throw new Error("Nothing was refused.");
}

describe("arguments", () => {
  test("in brackets are optional", () => {
    const spray: Command = { ...water, words: ["PLANT", "[BOTTLE]"] };
    expect(readCall(spray, ["fern"], terminal).words).toEqual(["fern"]);
    expect(readCall(spray, ["fern", "blue"], terminal).words).toEqual(["fern", "blue"]);
    expect(refusalOf(spray, []).message).toContain("PLANT");
    expect(refusalOf(spray, ["fern", "blue", "red"]).message).toContain("BOTTLE");
  });

  test("may start with a dash after --", () => {
    expect(readCall(water, ["--", "-fern"], terminal).words).toEqual(["-fern"]);
  });

  test("may be a dash alone, as a word and as a value", () => {
    expect(readCall(water, ["-", "--amount", "-"], terminal)).toMatchObject({
      words: ["-"],
      flags: { amount: "-" },
    });
  });

  test.each([
    ["a flag that is not known", ["fern", "--colour", "red"], "--colour"],
    ["a setting that is not read", ["fern", "--port", "1"], "--port"],
    ["a flag without its value", ["fern", "--amount"], "--amount"],
    ["a flag that is followed by another one", ["fern", "--amount", "--gently"], "--amount"],
    ["a value for a flag that has none", ["fern", "--gently=yes"], "--gently"],
    ["a short flag", ["fern", "-x"], "-x"],
    ["a flag that is given twice", ["fern", "--amount=1", "--amount=2"], "--amount"],
    ["a flag by half its name", ["fern", "--amoun", "1"], "Did you mean --amount?"],
    ["a flag with one dash", ["fern", "-amount", "1"], "Did you mean --amount?"],
    ["a word that looks like a flag", ["-7"], "Put -- before a word"],
    ["a flag that is no typo", ["fern", "--colour", "red"], "There is no flag --colour. See"],
    ["too few words", [], "PLANT is missing. Usage: plantstore water PLANT [flags]"],
    ["too many words", ["fern", "rose"], 'rose" is unexpected. Put several words'],
  ])("are refused for %s, in one line that names it", (_case, args, named) => {
    const { exitCode, message } = refusalOf(water, args);
    expect(exitCode).toBe(2);
    expect(message).toContain(named);
    expect(message).toMatch(/[.?] See plantstore water --help\.$/);
    expect(message).not.toContain("\n");
  });

  test("are refused for a word where none is taken", () => {
    expect(refusalOf(rain, ["cats"]).message).toBe(
      '"cats" is unexpected. Usage: plantstore rain [flags]. See plantstore rain --help.',
    );
  });
});
