/** What the shells offer, asked of the real shells where they are installed. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import { loadCommands } from "../catalog.ts";
import { renderBashCompletion } from "./bash.ts";
import { renderFishCompletion } from "./fish.ts";
import { readPlaceholder } from "./places.ts";
import { renderZshCompletion } from "./zsh.ts";

const commands = await loadCommands();

const topics = [
  "serve",
  "health",
  "check",
  "token",
  "plants",
  "backup",
  "restore",
  "import",
  "export",
  "copy",
  "completion",
  "help",
];

/** A line up to the cursor, words and what may come instead of the last one. */
const lines: [words: string[], offered: string[]][] = [
  [["s"], ["serve"]],
  [
    ["token", ""],
    ["create", "list", "revoke"],
  ],
  [["token", "r"], ["revoke"]],
  [["help", "token", "c"], ["create"]],
  [["--v"], ["--version"]],
  [["plants", "delete", "--j"], ["--json"]],
  [["token", "create", "--sc"], ["--scope"]],
  [
    ["token", "create", "--scope", ""],
    ["read", "write"],
  ],
  [["token", "create", "alice", "--scope", "w"], ["write"]],
  [["token", "create", "--note", "token", "--scope", "w"], ["write"]],
  [["token", "create", "--note", ""], []],
  [
    ["serve", "--log", ""],
    ["auto", "json", "off", "text"],
  ],
  [
    ["import", "--on-error", ""],
    ["continue", "stop"],
  ],
  [
    ["completion", ""],
    ["bash", "fish", "zsh"],
  ],
  [["grow", "--scope", "r"], []],
  [["grow", "s"], []],
  [["help", "token", "create", "l"], []],
];

const filesOffered: typeof lines = [
  [
    ["import", "pl"],
    ["plants.csv", "plants of ours.csv"],
  ],
  [
    ["import", "--format", "csv", "pl"],
    ["plants.csv", "plants of ours.csv"],
  ],
  [["serve", "--database", "plants."], ["plants.csv"]],
];

const withoutBash = Bun.which("bash") === null;
const withoutFish = Bun.which("fish") === null;
const withoutZsh = Bun.which("zsh") === null;

/** In a folder with two files. */
function runShell(command: string[], script: string): string {
  using folder = makeTemporaryFolder();
  touch(join(folder.path, "plants.csv"));
  touch(join(folder.path, "plants of ours.csv"));
  writeFileSync(join(folder.path, ".script"), script);
  const { stdout, stderr } = Bun.spawnSync(command, { cwd: folder.path });
  expect(stderr.toString()).toBe("");
  return stdout.toString();
}

describe.skipIf(withoutBash)("bash", () => {
  /** As bash calls it: the words before and at the cursor; behind that nothing. */
  function offer(words: readonly string[]): string[] {
    const quoted = ["plantstore", ...words].map((word) => `'${word}'`).join(" ");
    const call = `compopt() { :; }; . ./.script; COMP_WORDS=(${quoted}) COMP_CWORD=${words.length}
      _plantstore; ((\${#COMPREPLY[@]})) && printf '%s\\n' "\${COMPREPLY[@]}"`;
    return runShell(["bash", "-c", call], renderBashCompletion(commands)).split("\n").slice(0, -1);
  }

  test.each([...lines, ...filesOffered])("%j: %j", (words, offered) => {
    expect(offer(words).toSorted()).toEqual(offered.toSorted());
  });

  test("offers every command at the start", () => {
    expect(offer([""])).toEqual(topics);
  });

  test("offers every flag, also where no word is left to give", () => {
    const flags = ["--json", "--url", "--help", "--version"];
    expect(offer(["plants", "delete", "-"])).toEqual(flags);
    expect(offer(["plants", "delete", "7", ""])).toEqual(flags);
  });

  test("takes the equals sign for a word of its own, as bash does", () => {
    expect(offer(["token", "create", "--scope", "="])).toEqual(["read", "write"]);
    expect(offer(["token", "create", "--scope", "=", "r"])).toEqual(["read"]);
    expect(offer(["token", "create", "--scope", "=", "read", "--no"])).toEqual(["--note"]);
  });

  test("offers no flags behind two dashes", () => {
    expect(offer(["import", "--", "--f"])).toEqual([]);
  });

  test("is told which function to ask", () => {
    const script = `. ./.script; complete -p plantstore`;
    expect(runShell(["bash", "-c", script], renderBashCompletion(commands))).toBe(
      "complete -F _plantstore plantstore\n",
    );
  });
});

describe.skipIf(withoutFish)("fish", () => {
  function offer(words: readonly string[]): string[] {
    const call = `source .script; complete -C '${["plantstore", ...words].join(" ")}'`;
    const output = runShell(["fish", "--no-config", "-c", call], renderFishCompletion(commands));
    return output
      .split("\n")
      .slice(0, -1)
      .map((line) => line.split("\t")[0] ?? "");
  }

  test.each([...lines, ...filesOffered])("%j: %j", (words, offered) => {
    expect(offer(words).toSorted()).toEqual(offered.toSorted());
  });
});

test.skipIf(withoutZsh)("zsh takes its script for sound", () => {
  expect(runShell(["zsh", "-f", "-n", ".script"], renderZshCompletion(commands))).toBe("");
});

test.each([
  ["FILE", { choices: [], isFile: true }],
  ["[FILE|-]", { choices: [], isFile: true }],
  ["FILE|URL", { choices: [], isFile: true }],
  ["read|write", { choices: ["read", "write"], isFile: false }],
  ["NUMBER|auto", { choices: ["auto"], isFile: false }],
  ["PATH", { choices: [], isFile: false }],
])("the placeholder %s is read as %j", (placeholder, expected) => {
  expect(readPlaceholder(placeholder)).toEqual(expected);
});
