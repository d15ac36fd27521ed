/** The command line as it is called: which command runs, what is shown where, and the exit code. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeTerminal } from "../../test/command.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { hashToken, isTokenForm } from "../auth/opaque-token.ts";
import { openStorage } from "../storage/open.ts";
import { version } from "../version.ts";
import { commandNames, loadCommand } from "./catalog.ts";
import { flagsOf, readCall } from "./command.ts";
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
    ["plants rm", "plants delete"],
    ["token ls", "token list"],
  ])("plantstore %s explains %s", async (typed, name) => {
    for (const line of [`${typed} --help`, `${typed} -h`, `help ${typed}`]) {
      const { exitCode, out, said } = await run(...line.split(" "));
      expect([exitCode, said]).toEqual([0, []]);
      expect(out).toContain(`Usage: plantstore ${name}`);
    }
  });

  test("has whole sentences, a word about every flag, and examples as a shell reads them", async () => {
    const commands = await Promise.all(commandNames.map(loadCommand));
    const examples = commands.flatMap((command) => command.examples.map(() => command));
    const lines = commands.flatMap((command) => command.examples);
    const record = join(folder.path, "record");
    const standIn = `plantstore() { printf '%s\\0' "$@" >> ${record}; echo >> ${record}; }`;
    Bun.spawnSync(["bash", "-c", [standIn, ...lines].join("\n")], { cwd: folder.path });
    const called = readFileSync(record, "utf8").trimEnd().split("\n");
    expect(called).toHaveLength(lines.length);
    for (const [index, line] of called.entries()) {
      const command = examples[index] as (typeof commands)[number];
      const args = line.split("\0").slice(0, -1);
      const count = command.name.split(" ").length;
      expect(args.slice(0, count).join(" ")).toBe(command.name);
      readCall(command, args.slice(count), makeTerminal().terminal);
    }
    for (const command of commands) {
      expect(command.summary).toMatch(/^[A-Z].*\.$/s);
      for (const [flag, { help }] of Object.entries(flagsOf(command))) {
        expect([flag, help]).toEqual([flag, expect.stringMatching(/^[^A-Z].*[^.]$/)]);
      }
    }
  });

  test("shows the default and the variable of a setting", async () => {
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

  test.each([
    ["90m", 90 * 60_000],
    ["999999w", 999_999 * 7 * 86_400_000],
    ["9999-12-31", Date.UTC(9999, 11, 31)],
    ["2999-06-15T14:00:01+02:00", Date.UTC(2999, 5, 15, 12, 0, 1)],
  ])("a new one with --expires %s ends then", async (expires, ms) => {
    const { out } = await token("create", "bob", "--expires", expires, "--json");
    const { token: secret, ...shown } = JSON.parse(out);
    expect(isTokenForm(secret)).toBe(true);
    expect([shown]).toEqual(await listTokens());
    const isDate = expires.includes("-");
    expect(Date.parse(shown.expiresAt)).toBe(isDate ? ms : Date.parse(shown.createdAt) + ms);
  });

  test("are listed as a table and as JSON, without their secrets", async () => {
    const secret = (await token("create", "alice", "--note", "for tests")).out.trimEnd();
    const table = (await token("list")).out;
    expect(table).toMatch(
      /^ID +USER +GARDEN +SCOPE +STATE +CREATED +EXPIRES +USED +NOTE\n.* for tests\n$/,
    );
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
