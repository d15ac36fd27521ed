/** What a person sees at a terminal: the real program, on a pseudo-terminal. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { realProgram, startService, waitFor } from "./running-service.ts";

setDefaultTimeout(120_000);

const folder = makeTemporaryFolder();
const service = await startService();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** What the terminal gets, without carriage returns. */
async function runAtTerminal(
  line: string,
  variables: Readonly<Record<string, string>> = {},
  answer?: string,
) {
  const decoder = new TextDecoder();
  let text = "";
  const child = Bun.spawn([process.execPath, realProgram, ...line.split(" ")], {
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
  if (answer !== undefined) {
    await waitFor(() => text.includes("[y/N]") || undefined);
    child.terminal?.write(`${answer}\n`);
  }
  await child.exited;
  // The last bytes may arrive after the exit.
  await Bun.sleep(100);
  return text.replaceAll(/\r+\n/g, "\n");
}

async function addPlant(plant: object): Promise<void> {
  const { status } = await service.call("POST /plants", { body: JSON.stringify(plant) });
  expect(status).toBe(201);
}

test("plants get shows one table, even if a plant is missing", async () => {
  await addPlant({ id: 9, name: "Fern", tag: "shade" });
  // A joined emoji, and text that needs joiners.
  await addPlant({ id: 5000, name: "Monstera deliciosa", tag: "👩‍🌾 می‌روم" });
  expect(await runAtTerminal("plants get 9 10 5000")).toBe(
    "plantstore: There is no plant 10. See plantstore plants list.\n" +
      "ID    NAME                TAG\n" +
      "9     Fern                shade\n" +
      "5000  Monstera deliciosa  👩‍🌾 می‌روم\n",
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

test("plants delete says how many, and deletes them only after a yes", async () => {
  for (const id of [101, 102]) await addPlant({ id, name: "Fern", tag: "old" });
  const line = "plants delete --tag old";
  const question = 'Delete 2 plants with the tag "old"? [y/N] ';
  expect(await runAtTerminal(line, {}, "no")).toBe(`${question}no\nNothing was deleted.\n`);
  expect(await runAtTerminal("plants tags")).toMatch(/^PLANTS +TAG\n(?:.*\n)*2 +old\n/);
  expect(await runAtTerminal(line, {}, "y")).toBe(`${question}y\nDeleted 2 plants.\n`);
  expect(await runAtTerminal("plants list --tag old")).toStartWith("There are no plants");
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
    `import ${rows}`,
    `token create ${odd}`,
    `token list --database ${odd}`,
    `serve --log ${odd}`,
  ];
  for (const line of lines) {
    const shown = await runAtTerminal(line);
    expect({ line, shown }).toEqual({ line, shown: expect.stringContaining("\\u") });
    expect({ line, unsafe: unsafe.exec(shown)?.[0] }).toEqual({ line, unsafe: undefined });
  }
});
