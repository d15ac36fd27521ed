/**
 * What is true of every command, whoever adds it: its name, its texts, and examples that can be
 * pasted.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeTerminal } from "../../test/command.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { commandNames, loadCommand } from "./catalog.ts";
import { flagsOf, readCall } from "./command.ts";

const commands = await Promise.all(commandNames.map(loadCommand));
const { terminal } = makeTerminal();

describe.each(commands.map((command) => [command.name, command] as const))(
  "%s",
  (name, command) => {
    test("has a summary of whole sentences, and a word about every flag", () => {
      expect(command.summary).toMatch(/^[A-Z].*\.$/s);
      for (const [flag, { help }] of Object.entries(flagsOf(command))) {
        expect([flag, help]).toEqual([flag, expect.stringMatching(/^[^A-Z].*[^.]$/)]);
      }
    });

    test("has examples that call it, as a shell reads them", () => {
      expect(command.examples).not.toBeEmpty();
      for (const example of command.examples) {
        const args = readInShell(example);
        expect(args.slice(0, name.split(" ").length).join(" ")).toBe(name);
        expect(() => readCall(command, args.slice(name.split(" ").length), terminal)).not.toThrow();
      }
    });
  },
);

/**
 * The arguments that a real shell hands to plantstore, whatever stands around it in the example.
 */
function readInShell(example: string): string[] {
  using folder = makeTemporaryFolder();
  const record = join(folder.path, "record");
  const stand = `plantstore() { printf '%s\\0' "$@" >> ${record}; }
    kubectl() { while [ "$1" != -- ]; do shift; done; shift; "$@"; }`;
  Bun.spawnSync(["bash", "-c", `${stand}\n${example}\nwait`], { cwd: folder.path });
  // A process substitution may outlive the line that it stands in.
  for (let tries = 0; tries < 1_000 && !isThere(record); tries++) Bun.sleepSync(10);
  return readFileSync(record, "utf8").split("\0").slice(0, -1);
}

function isThere(path: string): boolean {
  return Bun.file(path).size > 0;
}
