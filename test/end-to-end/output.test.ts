/** What a person sees at a terminal, and what happens to output that nobody reads or keeps. */
import { afterAll, expect, test } from "bun:test";
import { closeSync, constants, existsSync, openSync } from "node:fs";
import { join, resolve } from "node:path";
import { runCommand } from "../../src/cli/run.ts";
import { makeTerminal } from "../../testing/command.ts";
import { pickPorts } from "../../testing/processes.ts";
import { realProgram, serveHere, waitFor } from "../../testing/running-service.ts";
import { skipsUnless } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const folder = makeTemporaryFolder();
const service = await serveHere();
const environment = {
  PLANTSTORE_URL: service.url,
  PLANTSTORE_TOKEN: service.token,
  PLANTSTORE_DATABASE: service.database,
};
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

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

test("a person gets tables and sentences, in their own time zone", async () => {
  const { TZ = "Etc/UTC" } = process.env;
  process.env.TZ = "Asia/Kolkata";
  const created = await run("token create eve --garden alice --expires 2099-07-01");
  const sentence = 'eve can read and write the garden "alice" (expires 2099-07-01 05:30 +05:30).';
  expect(created).toEndWith(`${sentence}\n`);
  const variables = { PLANTSTORE_TOKEN: created.split("\n")[0] ?? "" };
  const at = (line: string) => run(line, variables);
  expect(await at("whoami")).toBe(`${sentence} It has 0 plants.\n`);
  expect(await at("events")).toBe("There are no events.\n");
  expect(await at("plants add Fern --tag shade --id 9")).toBe("Added plant 9: Fern (shade).\n");
  expect(await at("plants edit 9 --tag=")).toBe("Changed plant 9: Fern.\n");
  expect((await at("events")).replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d/g, "2026-11-15 22:00")).toBe(
    "EVENT  WHEN                     WHO  WHAT      ID  NAME  TAG\n" +
      "1      2026-11-15 22:00 +05:30  eve  created   9   Fern  shade\n" +
      "2      2026-11-15 22:00 +05:30  eve  replaced  9   Fern\n",
  );
  process.env.TZ = TZ;
  // A joined emoji, and text that needs joiners.
  await at("plants add Monstera --tag 👩‍🌾می‌روم --id 5000");
  expect(await at("plants get 9 10 5000")).toBe(
    "plantstore: There is no plant 10. See plantstore plants list.\n" +
      "ID    NAME      TAG\n" +
      "9     Fern\n" +
      "5000  Monstera  👩‍🌾می‌روم\n",
  );
  expect(await at("plants get 9 --json")).toBe('{"id":9,"name":"Fern","tag":""}\n');
});

/** Clears the screen, sets a color, reverses the text, hides a letter, breaks the line. */
const odd = "\x1b[2J\u009b31m\u061c\u202e\u200b\u2028\u{e0041}";
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about.
const unsafe = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u202e\u200b\u2028\u{e0041}]/u;

/** What a pseudo-terminal gets from the real program, where a person answers its question. */
async function runAtTerminal(line: string, answer = ""): Promise<string> {
  const ended = Promise.withResolvers<void>();
  const decoder = new TextDecoder();
  let text = "";
  const child = Bun.spawn([process.execPath, realProgram, ...line.split(" ")], {
    env: { PATH: process.env.PATH, ...environment },
    terminal: {
      cols: 200,
      data(_, bytes) {
        text += decoder.decode(bytes, { stream: true });
      },
      // The last bytes may arrive after the exit.
      exit: () => ended.resolve(),
    },
  });
  if (answer !== "") {
    await waitFor(() => text.includes("[y/N]") || undefined);
    child.terminal?.write(`${answer}\n`);
  }
  await child.exited;
  await ended.promise;
  // Two sequences are ours: they end a line, and clear the one that shows progress.
  const [first = "", ...others] = text.replaceAll(/\r+\n/g, "\n").split("\r\x1b[2K");
  // What shows progress has no end of a line.
  return [first, ...others.filter((part) => part.includes("\n"))].join("");
}

test("a person is asked before a deletion, and no plant sends control characters to a terminal", async () => {
  const body = JSON.stringify({ name: `Fern${odd}`, tag: odd });
  expect((await service.call("POST /plants", { body })).status).toBe(201);
  const line = `plants delete --tag ${odd}`;
  const refused = await runAtTerminal(line, "no");
  expect(refused).toMatch(
    /^Delete 1 plant with the tag ".+"\? \[y\/N\] no\n.+ Nothing was deleted\.\n$/,
  );
  const exported = await runAtTerminal("export");
  expect(await runAtTerminal(line, "y")).toEndWith("[y/N] y\nDeleted 1 plant.\n");
  const message = await runAtTerminal(`serve --log ${odd}`);
  for (const shown of [refused, exported, message]) {
    expect(shown).toContain("\\u");
    expect(unsafe.exec(shown)?.[0]).toBeUndefined();
  }
});

test.skipIf(skipsUnless(existsSync("/dev/full"), "no /dev/full"))(
  "on a full disk, a command says so, and ends with 1",
  async () => {
    const command = [process.execPath, realProgram, "export", "--format", "csv"];
    const child = Bun.spawn(command, {
      env: { PATH: process.env.PATH, ...environment },
      stdout: openSync("/dev/full", "w"),
      stderr: "pipe",
    });
    const reason = "plantstore: Cannot write standard output: the disk is full.\n";
    expect([await child.exited, await child.stderr.text()]).toEqual([1, reason]);
  },
);

test.each([
  ["a pipe that nobody reads", "unread"],
  ["a full disk", "/dev/full"],
])("a log in %s does not hold up the service, nor its stop", async (_, place) => {
  // The log that would show the port goes nowhere.
  const [port = 0] = pickPorts(1);
  const path = resolve(folder.path, place);
  if (place === "unread") await Bun.$`mkfifo ${path}`;
  // Open for reading as well, so that it can be opened at all, and never read.
  const unread = openSync(path, constants.O_RDWR);
  const database = join(folder.path, `logging-${port}.db`);
  const args = ["serve", "--port", String(port), "--database", database, "--log", "json"];
  const child = Bun.spawn([process.execPath, realProgram, ...args, "--threads", "2"], {
    stdout: openSync(path, "w"),
    stderr: "ignore",
  });
  const url = `http://127.0.0.1:${port}`;
  await waitFor(() => fetch(`${url}/healthz`).then(Boolean, () => undefined));
  // A pipe holds 64 KiB, which is fewer than 400 lines.
  for (let count = 0; count < 500; count += 100) {
    const calls = Array.from({ length: 100 }, async () => (await fetch(`${url}/plants`)).status);
    expect(new Set(await Promise.all(calls))).toEqual(new Set([401]));
  }
  child.kill("SIGTERM");
  expect(await child.exited).toBe(0);
  closeSync(unread);
});
