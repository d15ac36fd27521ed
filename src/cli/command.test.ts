/** How a command's arguments are read, what is said of wrong ones, and what its help shows. */
import { describe, expect, test } from "bun:test";
import { alignColumns, type Command, readCall, renderHelp, type Terminal } from "./command.ts";

const terminal: Terminal = { isInteractive: false, isWatched: false, out() {}, say() {} };

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

function refusalOf(command: Command, args: readonly string[]): { code: string; message: string } {
  try {
    readCall(command, args, terminal);
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error("Nothing was refused.");
}

describe("arguments", () => {
  test("become words and flags, in any order", () => {
    const call = readCall(
      water,
      ["--amount", "2", "fern", "--gently", "--base-path=/v1"],
      terminal,
    );
    expect(call.words).toEqual(["fern"]);
    expect({ ...call.flags }).toEqual({ amount: "2", gently: true, "base-path": "/v1" });
    expect(call.terminal).toBe(terminal);
  });

  test("may be absent where no words are required", () => {
    expect(readCall(rain, [], terminal).words).toEqual([]);
  });

  test("may be left out where they stand in brackets", () => {
    const spray: Command = { ...water, words: ["PLANT", "[BOTTLE]"] };
    expect(readCall(spray, ["fern"], terminal).words).toEqual(["fern"]);
    expect(readCall(spray, ["fern", "blue"], terminal).words).toEqual(["fern", "blue"]);
    expect(refusalOf(spray, []).message).toContain("PLANT");
    expect(refusalOf(spray, ["fern", "blue", "red"]).message).toContain("BOTTLE");
  });

  test("may start with a dash behind two dashes", () => {
    expect(readCall(water, ["--", "-fern"], terminal).words).toEqual(["-fern"]);
  });

  test("may be empty text", () => {
    expect(readCall(water, ["", "--amount="], terminal)).toMatchObject({
      words: [""],
      flags: { amount: "" },
    });
  });

  test.each([
    ["a flag that is not known", ["fern", "--colour", "red"], "--colour"],
    ["a setting that is not read", ["fern", "--port", "1"], "--port"],
    ["a flag without its value", ["fern", "--amount"], "--amount"],
    ["a flag that is followed by another one", ["fern", "--amount", "--gently"], "--amount"],
    ["a value for a flag that has none", ["fern", "--gently=yes"], "--gently"],
    ["a short flag", ["fern", "-x"], "-x"],
    ["too few words", [], "PLANT"],
    ["too many words", ["fern", "rose"], "PLANT"],
  ])("are refused for %s, in one line that names it", (_case, args, named) => {
    const { code, message } = refusalOf(water, args);
    expect(code).toBe("invalid-request");
    expect(message).toContain(named);
    expect(message).toEndWith(". See plantstore water --help.");
    expect(message).not.toContain("\n");
  });

  test("are refused for a word where none is taken", () => {
    expect(refusalOf(rain, ["cats"]).message).toBe(
      '"cats" was not expected. See plantstore rain --help.',
    );
  });
});

describe("the help", () => {
  const help = renderHelp(water);

  test("says what the command does and how it is called", () => {
    expect(help).toStartWith("Water a plant.\n\nUsage: plantstore water PLANT [flags]\n");
    expect(help).toContain("\n  plantstore water fern --gently\n");
    expect(help).toEndWith("\n");
  });

  test.each([
    "--amount LITRES",
    "--gently ",
    "--database PATH",
    "--base-path PATH",
    "--help",
    "--version",
  ])("shows the flag %s", (flag) => {
    expect(help).toContain(`\n  ${flag}`);
  });

  test("shows the variable and the default of a setting", () => {
    expect(help).toContain("[PLANTSTORE_DATABASE, data/plants.db]");
    expect(help).toContain("[PLANTSTORE_BASE_PATH, none]");
  });
});

describe("columns", () => {
  test("stand under each other, without space at the end of a line", () => {
    const rows = [
      ["a", "bb", "c"],
      ["aaa", "b"],
      ["", undefined, "c"],
    ];
    expect(alignColumns(rows)).toEqual(["a    bb  c", "aaa  b", "         c"]);
  });

  test("of no rows are no lines", () => {
    expect(alignColumns([])).toEqual([]);
  });
});
