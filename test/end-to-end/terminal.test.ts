/** What a person sees at a terminal. */
import { afterAll, expect, test } from "bun:test";
import { runCommand } from "../../src/cli/run.ts";
import { makeTerminal } from "../command.ts";
import { makeToken, realProgram, serveHere, waitFor } from "./running-service.ts";

const service = await serveHere();
const environment = {
  PLANTSTORE_URL: service.url,
  PLANTSTORE_TOKEN: service.token,
  PLANTSTORE_DATABASE: service.database,
};
afterAll(() => service[Symbol.asyncDispose]());

/** What a terminal gets from a command in this process. */
async function run(line: string, variables: Readonly<Record<string, string>> = {}) {
  const shown: string[] = [];
  const { terminal } = makeTerminal({
    env: { ...environment, ...variables },
    isStdoutTty: true,
    isStderrTty: true,
    out: (text) => void shown.push(text),
    say: (text) => void shown.push(`${text}\n`),
  });
  await runCommand(line.split(" "), terminal);
  return shown.join("");
}

/** What a pseudo-terminal gets from the real program, without carriage returns. */
async function runAtTerminal(
  line: string,
  variables: Readonly<Record<string, string>> = {},
  answer?: string,
) {
  const decoder = new TextDecoder();
  const ended = Promise.withResolvers<void>();
  let text = "";
  const child = Bun.spawn([process.execPath, realProgram, ...line.split(" ")], {
    env: { PATH: process.env.PATH, ...environment, ...variables },
    terminal: {
      cols: 200,
      data(_, bytes) {
        text += decoder.decode(bytes, { stream: true });
      },
      // The last bytes may arrive after the exit.
      exit: () => ended.resolve(),
    },
  });
  if (answer !== undefined) {
    await waitFor(() => text.includes("[y/N]") || undefined);
    child.terminal?.write(`${answer}\n`);
  }
  await child.exited;
  await ended.promise;
  return text.replaceAll(/\r+\n/g, "\n");
}

async function addPlant(plant: object): Promise<void> {
  const { status } = await service.call("POST /plants", { body: JSON.stringify(plant) });
  expect(status).toBe(201);
}

test("plants get shows one table, even if a plant is missing, and JSON if it is asked to", async () => {
  await addPlant({ id: 9, name: "Fern", tag: "shade" });
  // A joined emoji, and text that needs joiners.
  await addPlant({ id: 5000, name: "Monstera deliciosa", tag: "👩‍🌾 می‌روم" });
  expect(await run("plants get 9 10 5000")).toBe(
    "plantstore: There is no plant 10. See plantstore plants list.\n" +
      "ID    NAME                TAG\n" +
      "9     Fern                shade\n" +
      "5000  Monstera deliciosa  👩‍🌾 می‌روم\n",
  );
  expect(await run("plants get 9 --json")).toBe('{"id":9,"name":"Fern","tag":"shade"}\n');
});

test("events are a table of who did what, and when", async () => {
  const variables = { PLANTSTORE_TOKEN: await makeToken(service, "eve") };
  expect(await run("events", variables)).toBe("There are no events.\n");
  const added = await run("plants add Fern --tag shade --id 1000", variables);
  expect(added).toBe("Added plant 1000: Fern (shade).\n");
  expect(await run("plants edit 1000 --tag=", variables)).toBe("Changed plant 1000: Fern.\n");
  const shown = await run("events", variables);
  const time = /\d{4}-\d\d-\d\d \d\d:\d\d (?:UTC|[+-]\d\d:\d\d)/g;
  expect(shown.replaceAll(time, "2026-11-15 22:00 UTC")).toBe(
    "EVENT  WHEN                  WHO  WHAT      ID    NAME  TAG\n" +
      "1      2026-11-15 22:00 UTC  eve  created   1000  Fern  shade\n" +
      "2      2026-11-15 22:00 UTC  eve  replaced  1000  Fern\n",
  );
});

test("a token is described in one sentence by token create and whoami", async () => {
  const flags = "--garden alice --scope read --expires 2099-07-01";
  const { TZ = "Etc/UTC" } = process.env;
  process.env.TZ = "Asia/Kolkata";
  const created = await run(`token create bob ${flags}`);
  process.env.TZ = TZ;
  const sentence = 'bob can read the garden "alice" (expires 2099-07-01 05:30 +05:30).';
  expect(created).toEndWith(`${sentence}\n`);
  const [token = ""] = created.split("\n");
  const shown = await run("whoami", { PLANTSTORE_TOKEN: token });
  expect(shown).toMatch(/^bob can read the garden "alice" \(expires .+\)\. It has 0 plants\.\n$/);
});

test("plants delete says how many, and deletes them only after a yes", async () => {
  for (const id of [101, 102]) await addPlant({ id, name: "Fern", tag: "old" });
  const line = "plants delete --tag old";
  const question = 'Delete 2 plants with the tag "old"? [y/N] ';
  const refused = await runAtTerminal(line, {}, "no");
  expect(refused).toBe(`${question}no\nplantstore: Nothing was deleted.\n`);
  expect(await run("plants tags")).toMatch(/^PLANTS +TAG\n(?:.*\n)*2 +old\n/);
  expect(await runAtTerminal(line, {}, "y")).toBe(`${question}y\nDeleted 2 plants.\n`);
  expect(await run("plants list --tag old")).toStartWith("There are no plants");
});

/** Clears the screen, sets a color, reverses the text, hides a letter, breaks the line. */
const odd = "\x1b[2J\u009b31m\u061c\u202e\u200b\u2028\u{e0041}";
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about.
const unsafe = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u202e\u200b\u2028\u{e0041}]/u;

test("no command sends control or format characters to a terminal", async () => {
  await addPlant({ id: 77, name: `Fern${odd}`, tag: odd });
  // Both ways to the terminal: a result, and a message.
  for (const line of ["export", `serve --log ${odd}`]) {
    // The line that shows progress is cleared by one of ours.
    const shown = (await runAtTerminal(line)).replaceAll("\r\x1b[2K", "");
    expect({ line, shown }).toEqual({ line, shown: expect.stringContaining("\\u") });
    expect({ line, unsafe: unsafe.exec(shown)?.[0] }).toEqual({ line, unsafe: undefined });
  }
});
