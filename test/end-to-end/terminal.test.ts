/** What a person sees at a terminal: the real program, on a pseudo-terminal. */
import { Database } from "bun:sqlite";
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { realProgram, runProgram, startService, waitFor } from "./running-service.ts";

setDefaultTimeout(120_000);

const folder = makeTemporaryFolder();
const service = await startService();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Starts a command; `shown` returns what the terminal has got so far, without carriage returns. */
function spawnAtTerminal(
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
) {
  const decoder = new TextDecoder();
  let text = "";
  const child = Bun.spawn([process.execPath, realProgram, ...args], {
    cwd: folder.path,
    env: {
      PATH: process.env.PATH,
      PLANTSTORE_URL: service.url,
      PLANTSTORE_TOKEN: service.token,
      PLANTSTORE_DATABASE: service.database,
      // No progress, which is drawn with escape codes.
      TERM: "dumb",
      ...variables,
    },
    terminal: {
      cols: 200,
      data(_, bytes) {
        text += decoder.decode(bytes, { stream: true });
      },
    },
  });
  return { child, shown: () => text.replaceAll(/\r+\n/g, "\n") };
}

async function runAtTerminal(line: string, variables?: Readonly<Record<string, string>>) {
  const { child, shown } = spawnAtTerminal(line.split(" "), variables);
  await child.exited;
  // The last bytes may arrive after the exit.
  await Bun.sleep(100);
  return shown();
}

async function addPlant(plant: object): Promise<void> {
  const { status } = await service.call("POST /plants", { body: JSON.stringify(plant) });
  expect(status).toBe(201);
}

test("plants get shows one table, even if a plant is missing", async () => {
  await addPlant({ id: 9, name: "Fern", tag: "shade" });
  await addPlant({ id: 5000, name: "Monstera deliciosa", tag: "hall" });
  expect(await runAtTerminal("plants get 9 10 5000")).toBe(
    "plantstore: There is no plant 10. See plantstore plants list.\n" +
      "ID    NAME                TAG\n" +
      "9     Fern                shade\n" +
      "5000  Monstera deliciosa  hall\n",
  );
});

test("a token is described in one sentence by token create and whoami", async () => {
  const own = await runAtTerminal("token create alice");
  expect(own).toMatch(
    /^plant_\w+\nToken \w+: alice can read and write the garden "alice" \(never expires\)\.\n$/,
  );
  const other = await runAtTerminal(
    "token create bob --garden alice --scope read --expires 2099-07-01",
    { TZ: "Asia/Kolkata" },
  );
  const sentence = 'bob can read the garden "alice" (expires 2099-07-01 05:30 +05:30).';
  expect(other).toEndWith(`${sentence}\n`);
  const [token = ""] = other.split("\n");
  const variables = { PLANTSTORE_TOKEN: token, TZ: "Asia/Kolkata" };
  expect(await runAtTerminal("whoami", variables)).toBe(`${sentence} It has 0 plants.\n`);
});

/** Clears the screen, sets a color, reverses the text, hides a letter, breaks the line. */
const odd = "\x1b[2J\u009b31m\u061c\u202e\u200b\u2028\u{e0041}";
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about.
const unsafe = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u202e\u200b\u2028\u{e0041}]/u;

test("no command sends control or format characters to a terminal", async () => {
  await addPlant({ id: 77, name: `Fern${odd}`, tag: odd });
  const rows = join(folder.path, "odd.csv");
  writeFileSync(rows, `name,${odd}\nFern,x\n`);
  const lines = [
    "plants list",
    "export",
    `plants list --tag ${odd}x`,
    `plants list ${odd}`,
    `plants get ${odd}`,
    `plants list --url http://${odd}`,
    `${odd}`,
    `import ${rows}`,
    `export ${odd}/x`,
    `token create ${odd}`,
    `token list --database ${odd}`,
    `restore ${odd}`,
    `check http://${odd}`,
    `serve --log ${odd}`,
  ];
  for (const line of lines) {
    const shown = await runAtTerminal(line);
    expect({ line, shown }).toEqual({ line, shown: expect.stringContaining("\\u") });
    expect({ line, unsafe: unsafe.exec(shown)?.[0] }).toEqual({ line, unsafe: undefined });
  }
});

test("a pipe gets no control characters of what something else wrote into the file, either", async () => {
  using file = new Database(service.database);
  file.run("UPDATE tokens SET note = char(27) || '[2J'");
  const { out } = await runProgram(["token", "list", "--database", service.database]);
  expect(out).toContain("\\u001b[2J");
  expect(out).not.toContain("\u001b");
});

test("an exported table starts with its header, without the mark for spreadsheets", async () => {
  expect(await runAtTerminal("export --format csv")).toStartWith("id,name,tag\n");
});

test("a joined emoji and text that needs joiners are shown as they are", async () => {
  await addPlant({ id: 78, name: "👩‍🌾 می‌روم" });
  expect(await runAtTerminal("plants get 78")).toContain("👩‍🌾 می‌روم");
});

test("a second start says how to make a token, in the store that it serves", async () => {
  const database = join(folder.path, "again.db");
  for (const sentence of [
    "Your first token",
    `To make another token: plantstore token create USER --database ${database}\n`,
  ]) {
    const { child, shown } = spawnAtTerminal(["serve", "--port", "0", "--database", database]);
    await waitFor(() => (shown().includes("Stop with Ctrl+C.\n\n") ? true : undefined));
    await Bun.sleep(200);
    child.kill("SIGTERM");
    await child.exited;
    expect(shown()).toContain(sentence);
  }
});
