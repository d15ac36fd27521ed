/** Arguments become words and flags, or one line that says what is wrong. */
import { expect, test } from "bun:test";
import { makeTerminal } from "../../test/command.ts";
import { type Command, readCall } from "./command.ts";

const { terminal } = makeTerminal();

const water: Command = {
  name: "water",
  summary: "Water a plant.",
  words: ["PLANT", "[BOTTLE]"],
  flags: {
    amount: { placeholder: "LITERS", help: "how much" },
    gently: { help: "without splashing" },
  },
  settings: ["database", "basePath"],
  examples: ["plantstore water fern --gently"],
  run: async () => 0,
};

test.each([
  [["fern"], ["fern"]],
  [
    ["fern", "blue"],
    ["fern", "blue"],
  ],
  [["--", "--help"], ["--help"]],
  [["-", "--amount", "-"], ["-"]],
])("%j has the words %j", (args, words) => {
  expect(readCall(water, args, terminal).words).toEqual(words);
});

test.each([
  ["a setting that is not read", ["fern", "--port", "1"], "--port"],
  ["a flag without its value", ["fern", "--amount"], "--amount"],
  ["a flag that is followed by another one", ["fern", "--amount", "--gently"], "--amount"],
  ["a value for a flag that has none", ["fern", "--gently=yes"], "--gently"],
  ["a flag by half its name", ["fern", "--amoun", "1"], "Did you mean --amount?"],
  ["a flag with one dash", ["fern", "-amount", "1"], "Did you mean --amount?"],
  ["a word that looks like a flag", ["-7"], "Put -- before a word"],
  ["a flag that is no typo", ["fern", "--color", "red"], "There is no flag --color. See"],
  ["too few words", [], "PLANT is missing. Usage: plantstore water PLANT [BOTTLE] [flags]"],
  ["too many words", ["fern", "blue", "rose"], 'rose" is unexpected. Put several words'],
])("%s is refused in one line that names it", (_case, args, named) => {
  const read = () => readCall(water, args, terminal);
  expect(read).toThrow(expect.objectContaining({ exitCode: 2 }));
  expect(read).toThrow(named);
  expect(read).toThrow(/^[^\n]*[.?] See plantstore water --help\.$/);
});
