/** The command line as it is called: which command runs, what is shown where, and the exit code. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeTerminal } from "../../testing/command.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { create } from "../../testing/tested-storage.ts";
import { hashToken, isTokenForm } from "../auth/opaque-token.ts";
import { version } from "../shared/version.ts";
import { openStorage } from "../storage/open.ts";
import { commandNames, loadCommand } from "./catalog.ts";
import { readCall } from "./command.ts";
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

  test("has examples that the commands take, as a shell reads them", async () => {
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
  });

  test("shows the default and the variable of a setting", async () => {
    const help = (await run("serve", "--help")).out.replaceAll(/\s+/g, " ");
    expect(help).toContain("[PLANTSTORE_PORT, default 8080]");
  });

  const others = "  serve";

  test.each<[line: string, exitCode: number, shown: readonly string[], hidden?: string]>([
    ["--help", 0, commandNames],
    ["help", 0, commandNames],
    ["", 2, commandNames],
    ["token --help", 0, ["token create"], others],
    ["help token", 0, ["token create"], others],
    ["token", 2, ["token create"], others],
  ])("%p exits with %d and shows %p", async (line, exitCode, names, hidden = "none") => {
    const result = await run(...line.split(" ").filter(Boolean));
    expect(result.exitCode).toBe(exitCode);
    const shown = exitCode === 0 ? result.out : result.said.join("\n");
    for (const name of names) expect(shown).toMatch(new RegExp(`^  ${name} `, "m"));
    expect(shown).not.toContain(hidden);
  });

  test("-v, version and --version show the version alone", async () => {
    for (const line of ["-v", "version", "--version", "token create --version"]) {
      expect(await run(...line.split(" "))).toEqual({ exitCode: 0, out: `${version}\n`, said: [] });
    }
  });
});

describe("tokens", () => {
  test("are printed alone when they are new, and listed without their secrets", async () => {
    const flags = ["--garden", "team", "--scope", "read", "--note", "for tests"];
    const { exitCode, out, said } = await token("create", ...flags, "bob");
    expect({ exitCode, said }).toEqual({
      exitCode: 0,
      said: [
        expect.stringMatching(/^Created a new store in .*plants\.db\. .* --database\.$/),
        expect.stringMatching(/^Token \w{10}: bob can read the garden "team" \(never expires\)\.$/),
      ],
    });
    const secret = out.trimEnd();
    expect(isTokenForm(secret)).toBe(true);
    const table = (await token("list")).out;
    expect(table).toMatch(
      /^ID +USER +GARDEN +SCOPE +STATE +CREATED +EXPIRES +USED +NOTE\n.* for tests\n$/,
    );
    const listed = await listTokens();
    expect(listed).toEqual([
      {
        id: expect.any(String),
        user: "bob",
        garden: "team",
        scope: "read",
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

  test.each([
    ["90m", 90 * 60_000],
    ["9999-12-31", Date.UTC(9999, 11, 31)],
    ["2999-06-15T14:00:01+02:00", Date.UTC(2999, 5, 15, 12, 0, 1)],
  ])("with --expires %s end then", async (expires, ms) => {
    const { out } = await token("create", "bob", "--expires", expires, "--json");
    const { token: _, ...shown } = JSON.parse(out);
    expect([shown]).toEqual(await listTokens());
    const isDate = expires.includes("-");
    expect(Date.parse(shown.expiresAt)).toBe(isDate ? ms : Date.parse(shown.createdAt) + ms);
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

test("gardens are listed, and deleted after a yes once their tokens are revoked", async () => {
  const garden = (...args: string[]) => run("garden", ...args, "--database", database);
  const listed = async () => JSON.parse((await garden("list", "--json")).out);
  await token("create", "alice");
  await token("create", "bob");
  const [id, other] = (await listTokens()).map((each: { id: string }) => each.id);
  const storage = await openStorage(database, { isServing: true });
  const atMs = Date.UTC(2030, 0, 1);
  // The last one is where a service tries whether it can write.
  for (const name of ["jwt", "alice", "\n"]) await storage.apply([create({ garden: name, atMs })]);
  await storage.close();
  const counts = { plants: 1, lastEvent: 1, lastEventAt: "2030-01-01T00:00:00.000Z" };
  expect(await listed()).toEqual([
    { garden: "alice", ...counts, tokens: [id] },
    { garden: "bob", plants: 0, lastEvent: 0, lastEventAt: null, tokens: [other] },
    { garden: "jwt", ...counts, tokens: [] },
  ]);
  expect((await garden("ls")).out).toMatch(
    /^GARDEN +PLANTS +LAST EVENT +TOKENS\nalice +1 +1 \(2.+\) +\w+ \(alice\)\nbob +0 +0 +\w+ \(bob\)\njwt +1 +1 \(2/,
  );
  for (const [args, exitCode, reason] of [
    [["nobody", "--yes"], 3, '"nobody"'],
    [["alice", "--yes"], 1, `revoke ${id}`],
    [["jwt"], 2, "--yes"],
  ] as const) {
    const said = [expect.stringContaining(reason)];
    expect(await garden("delete", ...args)).toEqual({ exitCode, out: "", said });
  }
  const { terminal, written } = makeTerminal({ confirm: async () => false });
  expect(await runCommand(["garden", "delete", "jwt", "--database", database], terminal)).toBe(1);
  expect(written.said).toEqual(["plantstore: Nothing was deleted."]);
  expect(await listed()).toHaveLength(3);

  await token("revoke", id);
  const said = ['Deleted the garden "alice" with 1 plant.'];
  expect(await garden("delete", "alice", "--yes")).toMatchObject({ exitCode: 0, said });
  expect(await listed()).toMatchObject([{ garden: "bob" }, { garden: "jwt" }]);
});
