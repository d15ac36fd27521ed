/** The command line as it is called: which command runs, what is shown where, and the exit code. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { makeTerminal } from "../../test/command.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { hashToken, isTokenForm } from "../auth/opaque-token.ts";
import { openStorage } from "../storage/open.ts";
import { version } from "../version.ts";
import { commandNames } from "./catalog.ts";
import { runCommand } from "./run.ts";

let folder: ReturnType<typeof makeTemporaryFolder>;
let database: string;

beforeEach(() => {
  folder = makeTemporaryFolder();
  database = join(folder.path, "plants.db");
});

afterEach(() => folder[Symbol.dispose]());

async function run(...args: readonly string[]) {
  const { terminal, written } = makeTerminal();
  const exitCode = await runCommand(args, terminal);
  return { exitCode, ...written };
}

const token = (...args: string[]) => run("token", ...args, "--database", database);
const listTokens = async () => JSON.parse((await token("list", "--json")).out);

describe("help and version", () => {
  test.each([
    ...commandNames.map((name) => [name, name] as const),
    ...([
      ["plants rm", "plants delete"],
      ["plants ls", "plants list"],
      ["token remove", "token revoke"],
    ] as const),
  ])("plantstore %s explains %s", async (typed, name) => {
    for (const args of [
      [...typed.split(" "), "--help"],
      [...typed.split(" "), "-h"],
      ["help", ...typed.split(" ")],
    ]) {
      const { exitCode, out, said } = await run(...args);
      expect([exitCode, said]).toEqual([0, []]);
      expect(out).toContain(`Usage: plantstore ${name}`);
    }
  });

  test("shows the default and the variable of every setting", async () => {
    const help = (await run("serve", "--help")).out.replaceAll(/\s+/g, " ");
    expect(help).toContain("[PLANTSTORE_PORT, default 8080]");
  });

  test.each([
    ["--help", 0],
    ["help", 0],
    ["", 2],
  ])("%p shows every command", async (line, exitCode) => {
    const result = await run(...line.split(" ").filter(Boolean));
    expect(result.exitCode).toBe(exitCode);
    const shown = result.out + result.said;
    for (const name of commandNames) expect(shown).toMatch(new RegExp(`^  ${name} `, "m"));
  });

  test.each([
    ["token --help", 0],
    ["help token", 0],
    ["token", 2],
  ])("%p shows the commands for tokens only", async (line, expected) => {
    const { exitCode, out, said } = await run(...line.split(" "));
    expect(exitCode).toBe(expected);
    const shown = exitCode === 0 ? out : said[0];
    expect(shown).toContain("  token create USER");
    expect(shown).not.toContain("  serve");
  });

  test.each(["-v", "version", "--version", "token create --version"])(
    "%p shows the version alone",
    async (line) => {
      const shown = { exitCode: 0, out: `${version}\n`, said: [] };
      expect(await run(...line.split(" "))).toEqual(shown);
    },
  );
});

describe("an invalid call ends with 2 and one line, and leaves no database behind", () => {
  test.each([
    ["an unknown command", ["grow"], 'There is no command "grow"'],
    ["a flag before the command", ["--port", "1", "serve"], "The command comes first"],
    ["a typo in a command", ["srve"], "Did you mean serve?"],
    ["a typo in the first word", ["tokens", "list"], "Did you mean token?"],
    ["a typo in the second word", ["token", "crate", "alice"], "Did you mean token create?"],
    ["the second word alone", ["list"], "Did you mean token list or garden list or plants list?"],
    ["a typo in a flag", ["serve", "--prot", "1"], "Did you mean --port?"],
    ["a token in place of its id", ["token", "revoke", "plant_secret"], "not the token itself"],
    ["no user", ["token", "create"], "USER"],
    ["an empty user", ["token", "create", ""], "USER must be"],
    ["an empty garden", ["token", "create", "a", "--garden", ""], "--garden must be"],
    [
      "a user with a joiner",
      ["token", "create", "\u{1F469}\u200D\u{1F33E}"],
      "or format character",
    ],
    ["a format that isn't there", ["import", "x.csv", "--format", "tsv"], "--format must be"],
    ["an unknown scope", ["token", "create", "a", "--scope", "admin"], "--scope must be"],
    ["an invalid expiry", ["token", "create", "a", "--expires", "soon"], "--expires must be"],
    ["no such day", ["token", "create", "a", "--expires", "2131-02-30"], "--expires must be"],
  ])("for %s", async (_case, args, message) => {
    const ofToken = args[0] === "token" ? ["--database", database] : [];
    const { exitCode, out, said } = await run(...args, ...ofToken);
    expect([exitCode, out, said.length]).toEqual([2, "", 1]);
    expect(said[0]).toMatch(/^plantstore: .*$/);
    expect(said[0]).toContain(message);
    expect(existsSync(database)).toBe(false);
  });
});

describe("tokens", () => {
  test("a new one is printed alone, and opens what was asked for", async () => {
    const flags = ["--garden", "team", "--scope", "read"];
    const { exitCode, out, said } = await token("create", ...flags, "bob");
    expect({ exitCode, said }).toEqual({
      exitCode: 0,
      said: [
        expect.stringMatching(/^Created a new store in .*plants\.db\. .* --database\.$/),
        expect.stringMatching(/^Token \w{10}: bob can read the garden "team" \(never expires\)\.$/),
      ],
    });
    expect(isTokenForm(out.trimEnd())).toBe(true);
    const storage = await openStorage(database, { isServing: false });
    const record = await storage.findToken(hashToken(out.trimEnd()));
    await storage.close();
    expect(record).toMatchObject({ user: "bob", garden: "team", scope: "read" });
  });

  test("a new one is printed as JSON, with what a list shows of it", async () => {
    const { out } = await token("create", "bob", "--expires", "30d", "--json");
    const { token: secret, ...shown } = JSON.parse(out);
    expect(isTokenForm(secret)).toBe(true);
    expect([shown]).toEqual(await listTokens());
  });

  test("are listed as a table and as JSON, without their secrets", async () => {
    const secret = (await token("create", "alice", "--note", "for tests")).out.trimEnd();
    const table = (await token("list")).out;
    expect(table.split("\n")[0]).toMatch(
      /^ID +USER +GARDEN +SCOPE +STATE +CREATED +EXPIRES +USED +NOTE$/,
    );
    expect(table).toContain("for tests");
    const listed = await listTokens();
    expect(listed).toEqual([
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
    for (const shown of [table, JSON.stringify(listed)]) {
      expect(shown).not.toContain(secret);
      expect(shown).not.toContain(hashToken(secret));
    }
  });

  test("are revoked, several at once, and once each; an unknown id stops no other", async () => {
    for (const user of ["alice", "bob"]) await token("create", user);
    const [first = "", second = ""] = (await listTokens()).map(({ id }: { id: string }) => id);
    const revoked = { exitCode: 0, out: "", said: [`Token ${first} is revoked.`] };
    expect(await token("revoke", first)).toEqual(revoked);
    const { exitCode, said } = await token("revoke", first, "nobody", second);
    expect(exitCode).toBe(1);
    for (const unknown of [first, "nobody"]) expect(said.join("\n")).toContain(unknown);
    const states = (await listTokens()).map(({ state }: { state: string }) => state);
    expect(states).toEqual(["revoked", "revoked"]);
  });
});
