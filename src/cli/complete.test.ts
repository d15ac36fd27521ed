/** What is offered for a line, by itself and in the real shells where they are installed. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { skipsWithout } from "../../test/skipping.ts";
import { makeTemporaryFolder, touch } from "../../test/temporary-folder.ts";
import { complete } from "./complete.ts";

setDefaultTimeout(120_000);

/** A folder with two files to complete, and the program on the path. */
const folder = makeTemporaryFolder();
afterAll(() => folder[Symbol.dispose]());
for (const name of ["plants.csv", "plants of ours.csv"]) touch(join(folder.path, name));
const main = join(import.meta.dir, "../main.ts");
const programs = join(folder.path, "bin");
const program = join(programs, "plantstore");
mkdirSync(programs);
writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
chmodSync(program, 0o755);
const env = { ...process.env, PATH: `${programs}:${process.env.PATH}`, TERM: "dumb" };

function run(command: readonly string[], input = ""): string {
  const options = { cwd: folder.path, env, stdin: Buffer.from(input) };
  const { stdout, stderr } = Bun.spawnSync([...command], options);
  expect(stderr.toString()).toBe("");
  return stdout.toString();
}

for (const shell of ["bash", "zsh", "fish"]) {
  writeFileSync(join(folder.path, `.${shell}`), run([program, "completion", shell]));
}

/** The words up to the cursor, and what the last one may become. */
type Case = [words: string[], offered: string[]];

const everyCommand = [
  "serve",
  "health",
  "token",
  "whoami",
  "plants",
  "events",
  "backup",
  "restore",
  "import",
  "export",
  "copy",
  "completion",
  "help",
];

test.each<Case>([
  [[""], everyCommand],
  [["token", "r"], ["revoke"]],
  [["help", "token", "c"], ["create"]],
  [["--v"], ["--version"]],
  [["plants", "list", "--tag", "x", "--li"], ["--limit"]],
  [["token", "create", "alice", "--scope", "w"], ["write"]],
  [["token", "create", "--scope=w"], ["write"]],
  [["token", "create", "--note", "token", "--scope", "w"], ["write"]],
  [["token", "create", "--note", ""], []],
  [["token", "create", "--scope", "=", "read", "--no"], ["--note"]],
  [["serve", "--threads", ""], ["auto"]],
  [["serve", "--database", "pl"], [":file"]],
  [["export", ""], [":file"]],
  [["import", "--", "--f"], [":file"]],
  [["grow", "s"], []],
])("%j: %j", async (words, offered) => {
  const lines = (await complete(words)).split("\n").slice(0, -1);
  expect(lines.map((line) => line.split("\t")[0] ?? "")).toEqual(offered);
});

const cases: Case[] = [
  [[""], everyCommand.toSorted()],
  [
    ["token", "create", "--scope", ""],
    ["read", "write"],
  ],
  [
    ["import", "plants"],
    ["plants of ours.csv", "plants.csv"],
  ],
];

describe.skipIf(skipsWithout("bash"))("bash", () => {
  /** As bash calls it: the words before and at the cursor. */
  function offer(words: readonly string[]): string[] {
    const quoted = ["plantstore", ...words].map((word) => `'${word}'`).join(" ");
    const call = `compopt() { :; }; . ./.bash; COMP_WORDS=(${quoted}) COMP_CWORD=${words.length}
      _plantstore; ((\${#COMPREPLY[@]})) && printf '%s\\n' "\${COMPREPLY[@]}"`;
    return run(["bash", "-c", call]).split("\n").slice(0, -1).toSorted();
  }

  test.each(cases)("%j: %j", (words, offered) => {
    expect(offer(words)).toEqual(offered);
  });

  test("takes the equals sign for a word of its own", () => {
    expect(offer(["token", "create", "--scope", "=", "r"])).toEqual(["read"]);
    expect(offer(["serve", "--database", "=", "plants."])).toEqual(["plants.csv"]);
  });
});

describe.skipIf(skipsWithout("fish"))("fish", () => {
  function offer(words: readonly string[]): string[] {
    const call = `source .fish; complete -C '${["plantstore", ...words].join(" ")}'`;
    const lines = run(["fish", "--no-config", "-c", call]).split("\n").slice(0, -1);
    return lines.map((line) => line.split("\t")[0] ?? "").toSorted();
  }

  test.each<Case>([
    ...cases,
    [["token", "create", "--scope=w"], ["--scope=write"]],
    [["serve", "--database=plants."], ["--database=plants.csv"]],
  ])("%j: %j", (words, offered) => {
    expect(offer(words)).toEqual(offered);
  });
});

describe.skipIf(skipsWithout("zsh"))("zsh", () => {
  /** Types a line and a tab into an interactive shell; what runs prints its words. */
  function type(line: string): string[] {
    const script = `
      zmodload zsh/zpty
      zpty shell zsh -f -i
      send() { zpty -w -n shell "$1"; zpty -r shell reply "*$2*" }
      plantstore='plantstore() {
        if [[ $1 == __complete ]]; then command plantstore "$@"; else print -rl BEGIN "$@" END; fi
      }'
      send "PS1='ready> '; autoload compinit; compinit -u -D; source .zsh; $plantstore; print SET"$'\\n' $'SET\\r\\n*ready> '
      send ${quote(`plantstore ${line}`)}$'\\t\\n' $'BEGIN\\r\\n*END'
      print -r -- "$reply"`;
    const output = run(["zsh", "-f", "-c", script]).replaceAll("\r", "");
    return /BEGIN\n([\s\S]*)\nEND/.exec(output)?.[1]?.split("\n") ?? [];
  }

  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

  test.each([
    ["ser", ["serve"]],
    ["token create --scope=w", ["token", "create", "--scope=write"]],
    ["import plants\\ o", ["import", "plants of ours.csv"]],
  ])("%s becomes %j", (line, words) => {
    expect(type(line)).toEqual(words);
  });
});
