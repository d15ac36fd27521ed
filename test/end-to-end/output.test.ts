/** What a person sees at a terminal, and what happens to output that nobody reads or keeps. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { closeSync, constants, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { runCommand } from "../../src/cli/run.ts";
import { makeTerminal } from "../../testing/command.ts";
import { pickPorts } from "../../testing/processes.ts";
import { openGarden, realProgram, serveHere, waitFor } from "../../testing/running-service.ts";
import { skipsUnless } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const folder = makeTemporaryFolder();
const service = await serveHere();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

type Environment = Readonly<Record<string, string>>;

/** What a terminal shows of a command in this process, on both outputs. */
async function show(line: string, env: Environment): Promise<string> {
  const shown: string[] = [];
  const { terminal } = makeTerminal({
    env,
    isStdoutTty: true,
    isStderrTty: true,
    out: (text) => void shown.push(text),
    say: (text) => void shown.push(`${text}\n`),
  });
  await runCommand(line.split(" "), terminal);
  return shown.join("");
}

describe("a person in Kolkata sees", () => {
  const { TZ: zoneBefore = "Etc/UTC" } = process.env;
  beforeAll(() => {
    process.env.TZ = "Asia/Kolkata";
  });
  afterAll(() => {
    process.env.TZ = zoneBefore;
  });

  test("a new token, what it opens, and when it expires in local time", async () => {
    const shown = await show("token create eve --garden shared --expires 2099-07-01", {
      PLANTSTORE_DATABASE: service.database,
    });

    expect(shown).toMatch(/^plant_\w{49}\n/);
    expect(shown).toEndWith(
      'eve can read and write the garden "shared" (expires 2099-07-01 05:30 +05:30).\n',
    );
  });

  test("what their token opens, and how many plants they have", async () => {
    const expiresAtMs = Date.parse("2099-07-01");
    const { env } = await openGarden(service, { user: "eve", garden: "empty", expiresAtMs });

    expect(await show("whoami", env)).toBe(
      'eve can read and write the garden "empty" (expires 2099-07-01 05:30 +05:30). ' +
        "It has 0 plants.\n",
    );
  });

  test("a sentence if there are no events", async () => {
    const { env } = await openGarden(service, { user: "uneventful" });

    expect(await show("events", env)).toBe("There are no events.\n");
  });

  test("a sentence about a plant that they add", async () => {
    const { env } = await openGarden(service, { user: "adder" });

    expect(await show("plants add Fern --tag shade --id 9", env)).toBe(
      "Added plant 9: Fern (shade).\n",
    );
  });

  test("a sentence about a plant that they change", async () => {
    const { env, run } = await openGarden(service, { user: "changer" });
    await run("plants add Fern --tag shade --id 9");

    expect(await show("plants edit 9 --tag=", env)).toBe("Changed plant 9: Fern.\n");
  });

  test("events as a table, in local time", async () => {
    const { env, run } = await openGarden(service, { user: "eve" });
    await run("plants add Fern --tag shade --id 9");
    await run("plants edit 9 --tag=");

    const shown = await show("events", env);

    expect(shown.replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d/g, "2026-11-15 22:00")).toBe(
      "EVENT  WHEN                     WHO  WHAT      ID  NAME  TAG\n" +
        "1      2026-11-15 22:00 +05:30  eve  created   9   Fern  shade\n" +
        "2      2026-11-15 22:00 +05:30  eve  replaced  9   Fern\n",
    );
  });

  test("plants as a table, with joined letters and emojis as they are", async () => {
    const { env, run } = await openGarden(service, { user: "joiner" });
    await run("plants add Fern --id 9");
    await run("plants add Monstera --tag 👩‍🌾می‌روم --id 5000");

    expect(await show("plants get 9 10 5000", env)).toBe(
      "plantstore: There is no plant 10. See plantstore plants list.\n" +
        "ID    NAME      TAG\n" +
        "9     Fern\n" +
        "5000  Monstera  👩‍🌾می‌روم\n",
    );
  });

  test("JSON with --json", async () => {
    const { env, run } = await openGarden(service, { user: "json" });
    await run("plants add Fern --id 9");

    expect(await show("plants get 9 --json", env)).toBe('{"id":9,"name":"Fern","tag":""}\n');
  });
});

/** What a pseudo-terminal gets from the real program, where a person answers its question. */
async function runAtTerminal(line: string, env: Environment, answer = ""): Promise<string> {
  const ended = Promise.withResolvers<void>();
  const decoder = new TextDecoder();
  let text = "";
  const child = Bun.spawn([process.execPath, realProgram, ...line.split(" ")], {
    env: { PATH: process.env.PATH, ...env },
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

describe("a deletion at a terminal asks first", () => {
  test("and deletes nothing after a no", async () => {
    const { env, run } = await openGarden(service, { user: "hesitant" });
    await run("plants add Fern --tag hall");

    expect(await runAtTerminal("plants delete --tag hall", env, "no")).toBe(
      'Delete 1 plant with the tag "hall"? [y/N] no\nplantstore: Nothing was deleted.\n',
    );
    expect((await run("plants list")).out).toContain("Fern");
  });

  test("and deletes the plants after a yes", async () => {
    const { env, run } = await openGarden(service, { user: "resolute" });
    await run("plants add Fern --tag hall");

    expect(await runAtTerminal("plants delete --tag hall", env, "y")).toBe(
      'Delete 1 plant with the tag "hall"? [y/N] y\nDeleted 1 plant.\n',
    );
    expect((await run("plants list")).out).toBe("[]\n");
  });
});

describe("a terminal gets no control characters", () => {
  /** Clears the screen, sets a color, reverses the text, hides a letter, breaks the line. */
  const odd = "\x1b[2J\u009b31m\u061c\u202e\u200b\u2028\u{e0041}";
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about.
  const unsafe = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u202e\u200b\u2028\u{e0041}]/u;

  async function openGardenWithOddPlant(user: string) {
    const garden = await openGarden(service, { user });
    const body = JSON.stringify({ name: `Fern${odd}`, tag: odd });
    expect((await garden.call("POST /plants", { body })).status).toBe(201);
    return garden;
  }

  function expectEscaped(shown: string): void {
    expect(shown).toContain("\\u");
    expect(unsafe.exec(shown)?.[0]).toBeUndefined();
  }

  test("from plants that are exported", async () => {
    const { env } = await openGardenWithOddPlant("odd-export");

    expectEscaped(await runAtTerminal("export", env));
  });

  test("from a tag in a question", async () => {
    const { env, run } = await openGardenWithOddPlant("odd-question");

    const shown = await runAtTerminal(`plants delete --tag ${odd}`, env, "no");

    expectEscaped(shown);
    expect(shown).toMatch(
      /^Delete 1 plant with the tag ".+"\? \[y\/N\] no\n.+ Nothing was deleted\.\n$/,
    );
    expect((await run("plants list")).out).toContain("Fern");
  });

  test("from a flag that is refused", async () => {
    expectEscaped(await runAtTerminal(`serve --log ${odd}`, {}));
  });

  test("though a plant with such a tag can be deleted", async () => {
    const { env } = await openGardenWithOddPlant("odd-deletion");

    const shown = await runAtTerminal(`plants delete --tag ${odd}`, env, "y");

    expect(shown).toEndWith("[y/N] y\nDeleted 1 plant.\n");
  });
});

const hasNoFullDisk = skipsUnless(existsSync("/dev/full"), "no /dev/full");

test.skipIf(hasNoFullDisk)("on a full disk, a command says so, and ends with 1", async () => {
  const { env } = await openGarden(service, { user: "full" });
  const child = Bun.spawn([process.execPath, realProgram, "export", "--format", "csv"], {
    env: { PATH: process.env.PATH, ...env },
    stdout: openSync("/dev/full", "w"),
    stderr: "pipe",
  });

  expect(await child.exited).toBe(1);
  expect(await child.stderr.text()).toBe(
    "plantstore: Cannot write standard output: the disk is full.\n",
  );
});

describe("a service and its stop aren't held up by a log", () => {
  /** Writes more lines to the log than a pipe holds, and then stops the service. */
  async function expectToServeAndStop(logPath: string): Promise<void> {
    // The log that would show the port goes nowhere.
    const [port = 0] = pickPorts(1);
    const url = `http://127.0.0.1:${port}`;
    const database = join(folder.path, `logging-${port}.db`);
    const child = Bun.spawn(
      [
        process.execPath,
        realProgram,
        ...["serve", "--port", String(port), "--database", database],
        ...["--log", "json", "--threads", "2"],
      ],
      { stdout: openSync(logPath, "w"), stderr: "ignore" },
    );
    await waitFor(() => fetch(`${url}/healthz`).then(Boolean, () => undefined));

    // A pipe holds 64 KiB, which is fewer than 400 lines.
    for (let sent = 0; sent < 500; sent += 100) {
      const responses = await Promise.all(
        Array.from({ length: 100 }, () => fetch(`${url}/plants`)),
      );
      for (const { status } of responses) expect(status).toBe(401);
    }

    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
  }

  test("in a pipe that nobody reads", async () => {
    const pipe = join(folder.path, "unread");
    await Bun.$`mkfifo ${pipe}`;
    // Open for reading as well, so that it can be opened at all, and never read.
    const unread = openSync(pipe, constants.O_RDWR);

    await expectToServeAndStop(pipe);

    closeSync(unread);
  });

  test.skipIf(hasNoFullDisk)("on a full disk", () => expectToServeAndStop("/dev/full"));
});
