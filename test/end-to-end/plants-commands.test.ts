/** `plantstore plants` and `export` against a running service, as a script uses them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { openScriptedService, problemAnswer } from "../client/scripted-service.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { makeToken, runProgram, startService } from "./running-service.ts";

/** Each command is a process of its own, and a test runs several. */
setDefaultTimeout(120_000);

const folder = makeTemporaryFolder();
const service = await startService();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Runs commands against a garden of its own. */
async function openGarden(user: string, ...flags: string[]) {
  const token = await makeToken(service, user, ...flags);
  return (args: readonly string[], url = service.url) =>
    runProgram(args, { PLANTSTORE_URL: url, PLANTSTORE_TOKEN: token });
}

function writeFile(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
}

describe("whoami", () => {
  test("shows user, garden, scope and expiry of the token, and counts the plants", async () => {
    const flags = ["--garden", "shed", "--scope", "read", "--expires", "2099-01-01"];
    const run = await openGarden("whoever", ...flags);
    await (await openGarden("shed"))(["plants", "add", "Fern"]);
    expect(JSON.parse((await run(["whoami"])).out)).toEqual({
      user: "whoever",
      garden: "shed",
      scope: "read",
      plants: 1,
      expiresAt: "2099-01-01T00:00:00.000Z",
    });
    const elsewhere = await run(["whoami"], `${service.url}/elsewhere`);
    expect([elsewhere.exitCode, elsewhere.errors]).toEqual([1, expect.stringContaining("--url")]);
  });
});

describe("plants", () => {
  test("are added, listed and deleted, as JSON with exact ids outside a terminal", async () => {
    const run = await openGarden("alice");
    const fern = ["Fern", "--tag", "shade", "--id", "9007199254740993"];
    const added = await run(["plants", "add", ...fern]);
    const plant = '{"id":9007199254740993,"name":"Fern","tag":"shade"}';
    expect(added).toEqual({ exitCode: 0, out: `${plant}\n`, errors: "" });
    await run(["plants", "add", "Moss", "--id=-7"]);
    const listed = await run(["plants", "list"]);
    expect(listed.out).toBe(`[\n{"id":-7,"name":"Moss","tag":""},\n${plant}\n]\n`);
    expect((await run(["plants", "list", "--limit", "1"])).out).toContain("Moss");
    expect((await run(["plants", "list", "--tag", "shade", "--limit", "1"])).out).toBe(
      `[\n${plant}\n]\n`,
    );
    const got = await run(["plants", "get", "9007199254740993", "8", "--", "-7"]);
    expect([got.exitCode, got.out]).toEqual([3, `${plant}\n{"id":-7,"name":"Moss","tag":""}\n`]);
    expect(got.errors).toBe("plantstore: There is no plant 8. See plantstore plants list.\n");
    const deleted = await run(["plants", "delete", "--", "-7"]);
    expect(deleted.out).toBe('{"id":-7,"confirmed":true}\n');
    await run(["plants", "delete", "9007199254740993"]);
    expect((await run(["plants", "list"])).out).toBe("[]\n");
  });

  test("are changed in part, and only if that changes them", async () => {
    const run = await openGarden("edith");
    await run(["plants", "add", "Fern", "--tag", "shade", "--id=-7"]);
    const edit = (...flags: string[]) => run(["plants", "edit", ...flags, "--", "-7"]);
    const renamed = '{"id":-7,"name":"Royal fern","tag":"shade"';
    const name = ["--name", "Royal fern"];
    expect((await edit(...name)).out).toBe(`${renamed},"changed":true}\n`);
    expect((await edit(...name, "--tag", "shade")).out).toBe(`${renamed},"changed":false}\n`);
    expect((await edit("--tag=")).out).toContain('"name":"Royal fern","tag":"","changed":true');
    expect((await run(["plants", "list"])).out).toContain('{"id":-7,"name":"Royal fern","tag":""}');
  });

  let bob: Awaited<ReturnType<typeof openGarden>>;
  beforeAll(async () => {
    bob = await openGarden("bob");
    await bob(["plants", "add", "Rose", "--id", "7"]);
  });

  test.each<[line: string, exitCode: number, named: string]>([
    ["plants delete 12345", 3, "There is no plant 12345."],
    ["plants delete 7 seven", 2, '"seven"'],
    ["plants delete 007", 2, '"007"'],
    ["plants edit 12345 --tag x", 3, "There is no plant 12345."],
    ["plants edit 7", 2, "--name, --tag or both"],
    ["plants edit 7 --name=", 2, "name must"],
    ["plants edit 7 8 --tag x", 2, '"8" is unexpected'],
    ["plants add Fern --id 7", 5, "7"],
    ["plants list --limit many", 2, '"many"'],
    ["plants list --url http://127.0.0.1:1", 6, "the connection is refused. Is the service"],
    ["plants list --url http://nope.invalid", 6, "the host is not known. Is the service"],
    ["plants list --token x", 2, "--token"],
    ["import /dev/null/plants.csv", 1, "/dev/null/plants.csv"],
    ["import plants.csv --on-error shrug", 2, "--on-error"],
    ["import plants.csv --format xml", 2, "--format"],
    ["import plants.csv --concurrency 257", 2, "--concurrency"],
    ["export /dev/null/plants.csv", 1, "/dev/null/plants.csv"],
  ])("plantstore %s ends with %d", async (line, exitCode, named) => {
    const finished = await bob(line.split(" "));
    expect(finished.exitCode).toBe(exitCode);
    expect(finished.errors.split("\n").at(-2)).toStartWith("plantstore: ");
    expect(finished.errors).toContain(named);
  });

  test.each<[what: string, token: string, named: string]>([
    ["no token", "", "Set PLANTSTORE_TOKEN"],
    ["half a token", "plant_abc", "not a whole token"],
    ["a token of another store", "somebody", "plantstore token create USER --database FILE"],
  ])("cannot be reached with %s", async (_what, token, named) => {
    const variables = { PLANTSTORE_URL: service.url, PLANTSTORE_TOKEN: token };
    const { exitCode, errors } = await runProgram(["plants", "list"], variables);
    expect([exitCode, errors]).toEqual([4, expect.stringContaining(named)]);
  });

  test("are deleted several at a time; those that are missing stop no other", async () => {
    const run = await openGarden("delia");
    for (const id of ["8", "9"]) await run(["plants", "add", "Fern", "--id", id]);
    const { exitCode, out, errors } = await run(["plants", "rm", "8", "10", "9"]);
    expect(out).toBe('{"id":8,"confirmed":true}\n{"id":9,"confirmed":true}\n');
    expect([exitCode, errors]).toEqual([3, expect.stringContaining("There is no plant 10.")]);
    expect((await run(["plants", "ls"])).out).toBe("[]\n");
  });

  test("cannot be added with a token that only reads", async () => {
    const run = await openGarden("carol", "--scope", "read");
    const { exitCode, errors } = await run(["plants", "add", "Fern"]);
    expect([exitCode, errors]).toEqual([4, expect.stringContaining("scope write")]);
  });

  test.each(["plants list", "plants delete 7", "export"])(
    "plantstore %s at a wrong path of the service ends with 1",
    async (line) => {
      const { exitCode, errors } = await bob(line.split(" "), `${service.url}/elsewhere`);
      expect([exitCode, errors]).toEqual([1, expect.stringContaining("Check --url.")]);
    },
  );

  test("are not listed by another server, or by a busy service", async () => {
    const run = await openGarden("dave");
    const stranger = await openScriptedService({ status: 200, body: "<html>" });
    expect(await run(["plants", "list"], stranger.url)).toMatchObject({ exitCode: 1 });
    stranger.close();
    const busy = await openScriptedService(problemAnswer(503, "unavailable"));
    expect(await run(["plants", "list"], busy.url)).toMatchObject({ exitCode: 6 });
    expect(busy.requests.length).toBe(3);
    busy.close();
  });
});

describe("health", () => {
  const health = (flags: readonly string[], url = service.url) =>
    runProgram(["health", ...flags], { PLANTSTORE_URL: url });

  test("finds the service by its own settings, as a container's check does", async () => {
    const own = { PLANTSTORE_PORT: String(service.port), PLANTSTORE_HOST: "0.0.0.0" };
    expect(await runProgram(["health"], own)).toMatchObject({ exitCode: 0, out: "ready\n" });
    const elsewhere = await health(["--port", "1", "--base-path", "/v1"]);
    expect(elsewhere.exitCode).toBe(6);
    expect(elsewhere.errors).toContain("No response from http://127.0.0.1:1/v1: ");
  });

  test("at a wrong path of the service says which flag to check", async () => {
    const { exitCode, errors } = await health([], `${service.url}/plants`);
    expect([exitCode, errors]).toEqual([6, expect.stringContaining("(status 401). Check --url.")]);
    const own = await health(["--port", String(service.port), "--base-path", "/v1"]);
    expect(own.errors).toEndWith("(status 404). Check --port and --base-path.\n");
  });
});

describe("an export", () => {
  test("that fails leaves the older file as it was", async () => {
    const run = await openGarden("nick");
    const path = writeFile("kept.jsonl", "older\n");
    const broken = await openScriptedService(problemAnswer(500, "internal"));
    expect(await run(["export", path], broken.url)).toMatchObject({ exitCode: 1 });
    broken.close();
    expect(readFileSync(path, "utf8")).toBe("older\n");
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".partial"))).toEqual([]);
  });

  test("keeps the older file's owner and mode, and follows a link to it", async () => {
    const run = await openGarden("olga");
    const path = writeFile("shared.jsonl", "older\n");
    chmodSync(path, 0o666);
    if (process.getuid?.() === 0) chownSync(path, 1234, 5678);
    const { uid, gid, mode } = statSync(path);
    const link = join(folder.path, "link.jsonl");
    symlinkSync(path, link);
    expect(await run(["export", link])).toMatchObject({ exitCode: 0 });
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readFileSync(path, "utf8")).toBe("");
    expect(statSync(path)).toMatchObject({ uid, gid, mode });
    expect(await run(["export", join(folder.path, "private.jsonl")])).toMatchObject({
      exitCode: 0,
    });
    expect(statSync(join(folder.path, "private.jsonl")).mode & 0o777).toBe(0o600);
  });

  test("replaces no database and no backup, and follows no links in a loop", async () => {
    const run = await openGarden("ruth");
    symlinkSync("circle", join(folder.path, "circle"));
    const backup = join(folder.path, "plants.backup");
    await runProgram(["backup", backup, "--database", service.database]);
    for (const path of [service.database, backup, join(folder.path, "circle")]) {
      const { exitCode, errors } = await run(["export", path]);
      expect([exitCode, errors]).toEqual([1, expect.stringMatching(/ (?:database|loop)\b.*\n$/)]);
    }
    expect(await run(["plants", "list"])).toMatchObject({ exitCode: 0, out: "[]\n" });
  });

  test("writes to a pipe as it is, and does not replace it", async () => {
    const run = await openGarden("peggy");
    await run(["plants", "add", "Fern", "--id", "7"]);
    const pipe = join(folder.path, "pipe");
    await Bun.$`mkfifo ${pipe}`;
    const reader = Bun.spawn(["cat", pipe]);
    expect(await run(["export", pipe, "--format", "csv"])).toMatchObject({ exitCode: 0 });
    expect(await new Response(reader.stdout).text()).toBe("id,name,tag\r\n7,Fern,\r\n");
    expect(statSync(pipe).isFIFO()).toBe(true);
  });
});
