/** Results that cannot be written, or that nobody reads: one line says so, and nothing is left. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { makeDatabase } from "../postgres-server.ts";
import { skipsUnless } from "../skipping.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { runProgram, startService } from "./running-service.ts";

setDefaultTimeout(120_000);

const program = join(import.meta.dir, "../../src/main.ts");
const folder = makeTemporaryFolder();
const service = await startService();
await service.call("POST /plants", { body: '{"name":"Fern"}' });

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** The program, by "$@", within a line of the shell. */
async function runInShell(line: string, args: readonly string[], url = service.url) {
  const child = Bun.spawn(["sh", "-c", line, "sh", process.execPath, program, ...args], {
    cwd: folder.path,
    env: { PATH: process.env.PATH, PLANTSTORE_URL: url, PLANTSTORE_TOKEN: service.token },
    stderr: "pipe",
  });
  return { exitCode: await child.exited, errors: await new Response(child.stderr).text() };
}

describe.skipIf(skipsUnless(existsSync("/dev/full"), "no /dev/full"))("on a full disk", () => {
  test.each(["plants list", "export", "--help", `backup - --database ${service.database}`])(
    "%s says so, and ends with 1",
    async (line) => {
      const finished = await runInShell('"$@" > /dev/full', line.split(" "));
      const errors = "plantstore: Cannot write standard output: the disk is full.\n";
      expect(finished).toEqual({ exitCode: 1, errors });
    },
  );

  test("messages that cannot be written do not stop an export", async () => {
    const finished = await runInShell('"$@" 2> /dev/full', ["export", "whole.csv"]);
    expect(finished.exitCode).toBe(0);
    expect(existsSync(join(folder.path, "whole.csv"))).toBe(true);
  });
});

test("an export into a pipe ends with 141 when its reader goes away", async () => {
  let pages = 0;
  using endless = Bun.serve({
    port: 0,
    async fetch() {
      // Its reader goes in between.
      await Bun.sleep(300);
      const link = `</plants?after=${++pages}>; rel="next"`;
      return new Response(`[{"id":${pages},"name":"Fern","tag":""}]`, { headers: { link } });
    },
  });
  const line = 'mkfifo pipe && { head -n 1 pipe > first & } && "$@"';
  const finished = await runInShell(line, ["export", "pipe"], `${endless.url.origin}`);
  expect(finished.exitCode).toBe(141);
});

test("restore leaves no temporary file when nobody reads its output", async () => {
  const database = await makeDatabase();
  try {
    const backup = join(folder.path, "plants.backup");
    await runProgram(["backup", backup, "--database", service.database]);
    const unpacked = join(folder.path, "unpacked");
    mkdirSync(unpacked);
    const line = `{ TMPDIR='${unpacked}' "$@"; echo "ended with $?" >&2; } | true`;
    const { errors } = await runInShell(line, ["restore", backup, "--database", database.url]);
    expect(errors).toBe("ended with 141\n");
    expect(readdirSync(unpacked)).toEqual([]);
    expect(await database.query("SELECT name FROM plants")).toEqual([{ name: "Fern" }]);
  } finally {
    await database.drop();
  }
});

test("an export that cannot rename its file says why, and leaves nothing", async () => {
  const path = join(folder.path, "taken.csv");
  using meddling = Bun.serve({
    port: 0,
    fetch() {
      mkdirSync(path, { recursive: true });
      return new Response("[]");
    },
  });
  const { exitCode, errors } = await runProgram(["export", path], {
    PLANTSTORE_URL: meddling.url.origin,
    PLANTSTORE_TOKEN: service.token,
  });
  expect(exitCode).toBe(1);
  expect(errors).toContain(`plantstore: Cannot write ${path}: it is a folder.\n`);
  expect(errors).not.toContain("    at ");
  expect(readdirSync(folder.path).filter((name) => name.includes(".partial"))).toEqual([]);
});
