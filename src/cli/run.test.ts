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

/** Takes the words of a command, or a line without quotes. */
async function run(command: string | readonly string[]) {
  const { terminal, written } = makeTerminal();
  const words = typeof command === "string" ? command.split(" ") : command;
  const exitCode = await runCommand(words, terminal);
  return { exitCode, ...written };
}

/** Runs a command on the store of the test. */
const runInStore = (command: string) => run([...command.split(" "), "--database", database]);

describe("help", () => {
  test.each([
    ...commandNames.map((name) => ({ typed: name, name })),
    { typed: "plants rm", name: "plants delete" },
    { typed: "token ls", name: "token list" },
  ])("of $typed explains $name, however it is asked for", async ({ typed, name }) => {
    for (const line of [`${typed} --help`, `${typed} -h`, `help ${typed}`]) {
      const { exitCode, out, said } = await run(line);

      expect(exitCode).toBe(0);
      expect(out).toContain(`Usage: plantstore ${name}`);
      expect(said).toEqual([]);
    }
  });

  test("has examples that the commands take, as a shell reads them", async () => {
    const commands = await Promise.all(commandNames.map(loadCommand));
    const examples = commands.flatMap((command) =>
      command.examples.map((line) => ({ command, line })),
    );

    // A shell runs them with a stand-in for plantstore, which writes a line of words for each call.
    const record = join(folder.path, "record");
    const standIn = `plantstore() { printf '%s\\0' "$@" >> ${record}; echo >> ${record}; }`;
    const script = [standIn, ...examples.map(({ line }) => line)].join("\n");
    Bun.spawnSync(["bash", "-c", script], { cwd: folder.path });
    const calls = readFileSync(record, "utf8").trimEnd().split("\n");

    expect(calls).toHaveLength(examples.length);
    for (const [index, { command }] of examples.entries()) {
      const words = calls[index]?.split("\0").slice(0, -1) ?? [];
      const wordsOfName = command.name.split(" ").length;
      expect(words.slice(0, wordsOfName).join(" ")).toBe(command.name);
      // It throws if the command doesn't take these words.
      readCall(command, words.slice(wordsOfName), makeTerminal().terminal);
    }
  });

  test("shows the default and the variable of a setting", async () => {
    const { out } = await run("serve --help");

    expect(out.replaceAll(/\s+/g, " ")).toContain("[PLANTSTORE_PORT, default 8080]");
  });
});

describe("the list of commands", () => {
  function expectList(text: string, names: readonly string[]): void {
    for (const name of names) expect(text).toMatch(new RegExp(`^  ${name} `, "m"));
  }

  test.each(["--help", "help"])("is the output of plantstore %s", async (line) => {
    const { exitCode, out } = await run(line);

    expect(exitCode).toBe(0);
    expectList(out, commandNames);
  });

  test("is an error message, with exit code 2, if there is no command", async () => {
    const { exitCode, out, said } = await run([]);

    expect(exitCode).toBe(2);
    expectList(said.join("\n"), commandNames);
    expect(out).toBe("");
  });

  test.each(["token --help", "help token"])(
    "of one subject is the output of plantstore %s",
    async (line) => {
      const { exitCode, out } = await run(line);

      expect(exitCode).toBe(0);
      expectList(out, ["token create"]);
      expect(out).not.toContain("  serve");
    },
  );

  test("of one subject is an error message if the rest of the command is missing", async () => {
    const { exitCode, out, said } = await run("token");

    expect(exitCode).toBe(2);
    expectList(said.join("\n"), ["token create"]);
    expect(said.join("\n")).not.toContain("  serve");
    expect(out).toBe("");
  });
});

test.each(["-v", "version", "--version", "token create --version"])(
  "plantstore %s shows the version alone",
  async (line) => {
    expect(await run(line)).toEqual({ exitCode: 0, out: `${version}\n`, said: [] });
  },
);

async function listTokens() {
  return JSON.parse((await runInStore("token list --json")).out);
}

/** Creates a token, and returns its id. */
async function createToken(user: string): Promise<string> {
  return JSON.parse((await runInStore(`token create ${user} --json`)).out).id;
}

describe("a new token", () => {
  test("is printed alone, and what it opens is a message", async () => {
    const { exitCode, out, said } = await runInStore("token create --garden team --scope read bob");

    expect(exitCode).toBe(0);
    expect(isTokenForm(out.trimEnd())).toBe(true);
    expect(said).toEqual([
      expect.stringMatching(/^Created a new store in .*plants\.db\. .* --database\.$/),
      expect.stringMatching(/^Token \w{10}: bob can read the garden "team" \(never expires\)\.$/),
    ]);
  });

  test.each([
    ["2999-06-15T14:00:01+02:00", "2999-06-15T12:00:01.000Z"],
    ["9999-12-31", "9999-12-31T00:00:00.000Z"],
  ])("with --expires %s expires at %s", async (expires, expiresAt) => {
    const { out } = await runInStore(`token create bob --expires ${expires} --json`);

    expect(JSON.parse(out).expiresAt).toBe(expiresAt);
  });

  test("with --expires 90m expires 90 minutes after it was created", async () => {
    const { out } = await runInStore("token create bob --expires 90m --json");

    const { createdAt, expiresAt } = JSON.parse(out);
    expect(Date.parse(expiresAt)).toBe(Date.parse(createdAt) + 90 * 60_000);
  });

  test("is shown with --json as it is listed, and with its secret", async () => {
    const { out } = await runInStore("token create bob --expires 90m --json");

    const { token, ...listed } = JSON.parse(out);
    expect(isTokenForm(token)).toBe(true);
    expect([listed]).toEqual(await listTokens());
  });
});

describe("a list of tokens", () => {
  const createCommand = ["token", "create", "bob", "--garden", "team", "--scope", "read"];

  /** Returns the secret. */
  async function createTokenWithNote(): Promise<string> {
    const { out } = await run([...createCommand, "--note", "for tests", "--database", database]);
    return out.trimEnd();
  }

  test("is a table for people", async () => {
    await createTokenWithNote();

    expect((await runInStore("token list")).out).toMatch(
      /^ID +USER +GARDEN +SCOPE +STATE +CREATED +EXPIRES +USED +NOTE\n.* for tests\n$/,
    );
  });

  test("is JSON with --json", async () => {
    await createTokenWithNote();

    expect(await listTokens()).toEqual([
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
  });

  test.each(["token list", "token list --json"])(
    "shows neither the secret nor its hash: %s",
    async (line) => {
      const secret = await createTokenWithNote();

      const { out } = await runInStore(line);

      expect(out).toContain("for tests");
      expect(out).not.toContain(secret);
      expect(out).not.toContain(hashToken(secret));
    },
  );
});

describe("token revoke", () => {
  async function readStates(): Promise<string[]> {
    return (await listTokens()).map(({ state }: { state: string }) => state);
  }

  test("revokes a token, and says so", async () => {
    const id = await createToken("alice");

    expect(await runInStore(`token revoke ${id}`)).toEqual({
      exitCode: 0,
      out: "",
      said: [`Token ${id} is revoked.`],
    });
    expect(await readStates()).toEqual(["revoked"]);
  });

  test("revokes several tokens", async () => {
    const alices = await createToken("alice");
    const bobs = await createToken("bob");

    const { exitCode } = await runInStore(`token revoke ${alices} ${bobs}`);

    expect(exitCode).toBe(0);
    expect(await readStates()).toEqual(["revoked", "revoked"]);
  });

  test("names tokens that are unknown or already revoked, and revokes the others", async () => {
    const revoked = await createToken("alice");
    await runInStore(`token revoke ${revoked}`);
    const active = await createToken("bob");

    const { exitCode, said } = await runInStore(`token revoke ${revoked} nobody ${active}`);

    expect(exitCode).toBe(1);
    expect(said.join("\n")).toContain(revoked);
    expect(said.join("\n")).toContain("nobody");
    expect(await readStates()).toEqual(["revoked", "revoked"]);
  });
});

/** Puts a plant into each garden. */
async function addPlants(...gardens: readonly string[]): Promise<void> {
  const storage = await openStorage(database, { isServing: true });
  const atMs = Date.parse("2030-01-01");
  for (const garden of gardens) await storage.apply([create({ garden, atMs })]);
  await storage.close();
}

async function listGardens() {
  return JSON.parse((await runInStore("garden list --json")).out);
}

describe("garden list", () => {
  test("shows gardens with plants or tokens as JSON, with what they have", async () => {
    const alicesToken = await createToken("alice");
    const bobsToken = await createToken("bob");
    await addPlants("jwt", "alice");

    expect(await listGardens()).toEqual([
      {
        garden: "alice",
        plants: 1,
        lastEvent: 1,
        lastEventAt: "2030-01-01T00:00:00.000Z",
        tokens: [alicesToken],
      },
      { garden: "bob", plants: 0, lastEvent: 0, lastEventAt: null, tokens: [bobsToken] },
      {
        garden: "jwt",
        plants: 1,
        lastEvent: 1,
        lastEventAt: "2030-01-01T00:00:00.000Z",
        tokens: [],
      },
    ]);
  });

  test("hides the garden where a service tries whether it can write", async () => {
    await addPlants("alice", "\n");

    expect(await listGardens()).toMatchObject([{ garden: "alice" }]);
  });

  test("shows a table to people, and is short: garden ls", async () => {
    await createToken("alice");
    await createToken("bob");
    await addPlants("jwt", "alice");

    expect((await runInStore("garden ls")).out).toMatch(
      /^GARDEN +PLANTS +LAST EVENT +TOKENS\nalice +1 +1 \(2.+\) +\w+ \(alice\)\nbob +0 +0 +\w+ \(bob\)\njwt +1 +1 \(2/,
    );
  });
});

describe("garden delete", () => {
  test("deletes a garden that no token opens", async () => {
    const token = await createToken("alice");
    await addPlants("alice", "jwt");
    await runInStore(`token revoke ${token}`);

    const { exitCode, said } = await runInStore("garden delete alice --yes");

    expect(exitCode).toBe(0);
    expect(said).toEqual(['Deleted the garden "alice" with 1 plant.']);
    expect(await listGardens()).toMatchObject([{ garden: "jwt" }]);
  });

  test("refuses a garden that a token opens, and says which to revoke", async () => {
    const token = await createToken("alice");
    await addPlants("alice");

    expect(await runInStore("garden delete alice --yes")).toEqual({
      exitCode: 1,
      out: "",
      said: [expect.stringContaining(`revoke ${token}`)],
    });
    expect(await listGardens()).toMatchObject([{ garden: "alice", plants: 1 }]);
  });

  test("exits with 3 if there is no such garden", async () => {
    await addPlants("jwt");

    expect(await runInStore("garden delete nobody --yes")).toEqual({
      exitCode: 3,
      out: "",
      said: [expect.stringContaining('"nobody"')],
    });
  });

  test("needs --yes if there is nobody to ask", async () => {
    await addPlants("jwt");

    expect(await runInStore("garden delete jwt")).toEqual({
      exitCode: 2,
      out: "",
      said: [expect.stringContaining("--yes")],
    });
    expect(await listGardens()).toMatchObject([{ garden: "jwt" }]);
  });

  test("deletes nothing after a no", async () => {
    await addPlants("jwt");
    const { terminal, written } = makeTerminal({ confirm: async () => false });

    const exitCode = await runCommand(
      ["garden", "delete", "jwt", "--database", database],
      terminal,
    );

    expect(exitCode).toBe(1);
    expect(written.said).toEqual(["plantstore: Nothing was deleted."]);
    expect(await listGardens()).toMatchObject([{ garden: "jwt" }]);
  });
});
