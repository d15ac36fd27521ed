/** The command line as it is called: which command runs, what is shown where, and the exit code. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashToken, isTokenForm } from "../auth/opaque-token.ts";
import { openStorage } from "../storage/open.ts";
import { version } from "../version.ts";
import { commandNames } from "./catalog.ts";
import { runCommand } from "./run.ts";

let folder: string;
let database: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "plantstore-run-"));
  database = join(folder, "plants.db");
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

interface Result {
  readonly exitCode: number;
  readonly out: string;
  readonly said: string[];
}

async function run(args: readonly string[], isTerminal = false): Promise<Result> {
  let out = "";
  const said: string[] = [];
  const exitCode = await runCommand(args, {
    isStdoutTty: isTerminal,
    isStderrTty: isTerminal,
    out(text) {
      out += text;
    },
    say: (text) => said.push(text),
  });
  return { exitCode, out, said };
}

function token(...args: string[]): Promise<Result> {
  return run(["token", ...args, "--database", database]);
}

describe("help and version", () => {
  test.each(commandNames)("plantstore %s explains itself", async (name) => {
    for (const flag of ["--help", "-h"]) {
      const { exitCode, out, said } = await run([...name.split(" "), flag]);
      expect(exitCode).toBe(0);
      expect(out).toContain(`Usage: plantstore ${name}`);
      expect(said).toEqual([]);
    }
  });

  test.each([
    [["--help"], 0],
    [["-h"], 0],
    [["help"], 0],
    [[], 2],
  ])("%p shows every command", async (args, exitCode) => {
    const result = await run(args);
    expect(result.exitCode).toBe(exitCode);
    const shown = result.out + result.said;
    for (const name of commandNames) expect(shown).toMatch(new RegExp(`^  ${name} `, "m"));
  });

  test.each([[["token", "--help"]], [["help", "token"]]])(
    "%p shows the commands for tokens only",
    async (args) => {
      const { exitCode, out } = await run(args);
      expect(exitCode).toBe(0);
      expect(out).toContain("  token create USER");
      expect(out).not.toContain("  serve");
    },
  );

  test.each([
    [["-v"]],
    [["version"]],
    [["--version"]],
    [["serve", "--version"]],
    [["token", "create", "--version"]],
  ])("%p shows the version alone", async (args) => {
    expect(await run(args)).toEqual({ exitCode: 0, out: `${version}\n`, said: [] });
  });

  test("--help after -- is a word, not a flag", async () => {
    const args = ["token", "create", "--database", database, "--", "--help"];
    const { exitCode, out } = await run(args);
    expect(exitCode).toBe(0);
    expect(isTokenForm(out.trimEnd())).toBe(true);
  });
});

test.each([
  ["plants rm", "plants delete"],
  ["plants ls", "plants list"],
  ["token remove", "token revoke"],
])("%s is %s", async (alias, name) => {
  const help = `Usage: plantstore ${name} `;
  expect((await run([...alias.split(" "), "--help"])).out).toContain(help);
  expect((await run(["help", ...alias.split(" ")])).out).toContain(help);
});

test("a group without a command lists its commands, and ends with 2", async () => {
  const { exitCode, out, said } = await run(["token"]);
  expect([exitCode, out]).toEqual([2, ""]);
  expect(said[0]).toContain("  token create USER");
  expect(said[0]).not.toContain("  serve");
});

describe("an invalid call ends with 2 and one line", () => {
  test.each([
    ["an unknown command", ["grow"], 'There is no command "grow"'],
    ["an unknown flag", ["--fast"], 'There is no command "--fast"'],
    ["a flag before the command", ["--port", "1", "serve"], "The command comes first"],
    ["a typo in a command", ["srve"], "Did you mean serve?"],
    ["a typo in the first word", ["tokens", "list"], "Did you mean token?"],
    ["a typo in the second word", ["token", "crate", "alice"], "Did you mean token create?"],
    ["a typo after help", ["help", "exprot"], "Did you mean export?"],
    ["the second word alone", ["list"], "Did you mean token list or plants list?"],
    ["an alias alone", ["ls"], "Did you mean plants ls or token ls?"],
    ["a typo in a flag", ["serve", "--prot", "1"], "Did you mean --port?"],
    ["a token in place of its id", ["token", "revoke", "plant_secret"], "not the token itself"],
    ["an unknown shell", ["completion", "bsh"], "only for bash, zsh, fish"],
    ["an invalid setting", ["serve", "--port", "http"], "--port must be"],
    ["no user", ["token", "create"], "USER"],
    ["an empty user", ["token", "create", ""], "USER must be"],
    ["an empty garden", ["token", "create", "a", "--garden", ""], "--garden must be"],
    [
      "a user with a joiner",
      ["token", "create", "\u{1F469}\u200D\u{1F33E}"],
      "or format characters",
    ],
    ["an empty batch", ["import", "x.csv", "--batch", ""], "--batch must be"],
    ["an unknown scope", ["token", "create", "a", "--scope", "admin"], "--scope must be"],
    ["an invalid expiry", ["token", "create", "a", "--expires", "soon"], "--expires must be"],
  ])("for %s", async (_case, args, message) => {
    const { exitCode, out, said } = await run(args);
    expect(exitCode).toBe(2);
    expect(out).toBe("");
    expect(said).toHaveLength(1);
    expect(said[0]).toStartWith("plantstore: ");
    expect(said[0]).toContain(message);
    expect(said[0]).not.toContain("\n");
  });

  test("and leaves no database behind", async () => {
    await token("create", "alice", "--scope", "admin");
    expect(existsSync(database)).toBe(false);
  });
});

describe("tokens", () => {
  test("a new one is printed alone, and opens what was asked for", async () => {
    const { exitCode, out, said } = await token(
      "create",
      "bob",
      "--garden",
      "team",
      "--scope",
      "read",
    );
    expect({ exitCode, said }).toEqual({
      exitCode: 0,
      said: [expect.stringMatching(/^Created a new store in .*plants\.db\. .* --database\.$/)],
    });
    expect(isTokenForm(out.trimEnd())).toBe(true);
    const storage = await openStorage(database, { isServing: false });
    const record = await storage.findToken(hashToken(out.trimEnd()));
    await storage.close();
    expect(record).toMatchObject({ user: "bob", garden: "team", scope: "read" });
  });

  test("are listed as a table and as JSON, without their secrets", async () => {
    const secret = (await token("create", "alice", "--note", "for tests")).out.trimEnd();
    const table = (await token("list")).out;
    expect(table.split("\n")[0]).toMatch(
      /^ID +USER +GARDEN +SCOPE +STATE +CREATED +EXPIRES +USED +NOTE$/,
    );
    expect(table).toContain("for tests");
    const json = (await token("list", "--json")).out;
    expect(JSON.parse(json)).toEqual([
      {
        id: expect.any(String),
        user: "alice",
        garden: "alice",
        scope: "write",
        state: "active",
        createdAt: expect.any(String),
        expiresAt: null,
        revokedAt: null,
        lastUsedAt: null,
        note: "for tests",
      },
    ]);
    for (const shown of [table, json]) {
      expect(shown).not.toContain(secret);
      expect(shown).not.toContain(hashToken(secret));
    }
  });

  test("are revoked once; a second time there is none to revoke", async () => {
    await token("create", "alice");
    const [{ id }] = JSON.parse((await token("list", "--json")).out);
    expect(await token("revoke", id)).toEqual({ exitCode: 0, out: "", said: [] });
    expect(JSON.parse((await token("list", "--json")).out)[0].state).toBe("revoked");
    const again = await token("revoke", id);
    expect(again.exitCode).toBe(1);
    expect(again.said).toHaveLength(1);
    expect(again.said[0]).toContain(id);
  });
});

test("several tokens are revoked at once; an id that is unknown stops no other", async () => {
  for (const user of ["alice", "bob"]) await token("create", user);
  const listed = JSON.parse((await token("list", "--json")).out) as { id: string }[];
  const [first = "", second = ""] = listed.map(({ id }) => id);
  const { exitCode, said } = await token("revoke", first, "nobody", second);
  expect([exitCode, said]).toEqual([1, [expect.stringContaining('with the id "nobody". See')]]);
  const states = JSON.parse((await token("list", "--json")).out) as { state: string }[];
  expect(states.map(({ state }) => state)).toEqual(["revoked", "revoked"]);
});
