/**
 * Commands that call a service, in scripts: `plants`, `whoami`, `export`, `import` and `health`,
 * against a real one and against other programs.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openScriptedService, problemAnswer } from "../client/scripted-service.ts";
import { runInProcess } from "../command.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { openGarden, serveHere, waitFor } from "./running-service.ts";

const folder = makeTemporaryFolder();
const service = await serveHere();
const { run: bob } = await openGarden(service, { user: "bob" });
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function writeFile(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
}

test("whoami shows user, garden, scope and expiry of the token, and counts the plants", async () => {
  const expiresAtMs = Date.parse("2099-01-01");
  const grant = { user: "whoever", garden: "shed", scope: "read", expiresAtMs } as const;
  const { run } = await openGarden(service, grant);
  expect(JSON.parse((await run("whoami")).out)).toEqual({
    user: "whoever",
    garden: "shed",
    scope: "read",
    plants: 0,
    lastEvent: 0,
    expiresAt: "2099-01-01T00:00:00.000Z",
  });
  const written = await run("plants add Fern");
  expect(written).toMatchObject({ exitCode: 4, errors: expect.stringContaining("scope write") });
});

describe("plants", () => {
  beforeAll(async () => {
    await bob("plants add Rose --id 7");
  });

  test("are added, listed and deleted, as JSON with exact ids outside a terminal", async () => {
    const { run } = await openGarden(service, { user: "alice" });
    const fern = ["Fern", "--tag", "shade", "--id", "9007199254740993"];
    const added = await run(["plants", "add", ...fern]);
    const plant = '{"id":9007199254740993,"name":"Fern","tag":"shade"}';
    expect(added).toEqual({ exitCode: 0, out: `${plant}\n`, errors: "" });
    await run("plants add Moss --id=-7");
    const moss = '{"id":-7,"name":"Moss","tag":""}';
    expect((await run("plants list")).out).toBe(`[\n${moss},\n${plant}\n]\n`);
    expect((await run("plants list --limit 1")).out).toBe(`[\n${moss}\n]\n`);
    expect((await run("plants list --tag shade")).out).toBe(`[\n${plant}\n]\n`);
    const ids = ["9007199254740993", "8", "--", "-7"];
    const errors = "plantstore: There is no plant 8. See plantstore plants list.\n";
    const got = await run(["plants", "get", ...ids]);
    expect(got).toEqual({ exitCode: 3, out: `${plant}\n${moss}\n`, errors });
    const out = '{"id":9007199254740993,"confirmed":true}\n{"id":-7,"confirmed":true}\n';
    expect(await run(["plants", "delete", ...ids])).toEqual({ exitCode: 3, out, errors });
    expect((await run("plants list")).out).toBe("[]\n");
  });

  test("are found by words, counted by tag, exported and deleted by tag or words", async () => {
    const { run } = await openGarden(service, { user: "finder" });
    const rows = ["Royal fern,pond", "Ivy,", "Tree fern,shade", "Moss,shade"];
    await run(["import", writeFile("found.csv", `name,tag\n${rows.join("\n")}\n`)]);
    const names = async (...flags: string[]) =>
      JSON.parse((await run(["plants", "list", ...flags])).out).map(
        ({ name }: { name: string }) => name,
      );
    expect(await names("--search", "FERN", "--newest")).toEqual(["Tree fern", "Royal fern"]);
    expect(await names("--newest", "--limit", "1")).toEqual(["Moss"]);
    expect(JSON.parse((await run("plants tags")).out)).toEqual([
      { tag: "", plants: 1 },
      { tag: "pond", plants: 1 },
      { tag: "shade", plants: 2 },
    ]);
    const shady = await run("export --tag shade --format jsonl");
    expect(shady.out.trim().split("\n")).toHaveLength(2);
    const refused = await run("plants delete --tag shade");
    expect(refused).toMatchObject({ exitCode: 2, out: "" });
    expect(refused.errors).toContain('To delete 2 plants with the tag "shade" without being asked');
    const deleted = await run("plants delete --tag shade --search moss --yes");
    expect(deleted).toMatchObject({ exitCode: 0, out: '{"deleted":1,"missing":0}\n' });
    await run("plants delete --search fern --yes");
    expect(await names()).toEqual(["Ivy"]);
    const none = await run("plants delete --search fern");
    expect(none).toMatchObject({ exitCode: 0, out: '{"deleted":0,"missing":0}\n' });
  });

  test("are changed in part", async () => {
    const { run } = await openGarden(service, { user: "edith" });
    await run("plants add Fern --tag shade --id=-7");
    const edit = (...flags: string[]) => run(["plants", "edit", ...flags, "--", "-7"]);
    const renamed = '{"id":-7,"name":"Royal fern","tag":"shade"';
    const name = ["--name", "Royal fern"];
    expect((await edit(...name)).out).toBe(`${renamed}}\n`);
    expect((await edit("--tag=")).out).toContain('"name":"Royal fern","tag":""}');
    expect(JSON.parse((await run("whoami")).out)).toMatchObject({ lastEvent: 3 });
  });
});

test("health finds the service by its own settings, as a container's check does", async () => {
  const own = { PLANTSTORE_PORT: String(service.port), PLANTSTORE_HOST: "0.0.0.0" };
  expect(await runInProcess(["health"], own)).toMatchObject({ exitCode: 0, out: "ready\n" });
});

describe("an export", () => {
  test("to a new file can be read by its owner only", async () => {
    const path = join(folder.path, "private.jsonl");
    expect(await bob(["export", path])).toMatchObject({ exitCode: 0 });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("that fails or is interrupted leaves the older file, and nothing else", async () => {
    const older = writeFile("older.jsonl", "older\n");
    const broken = await openScriptedService(problemAnswer(500, "internal"));
    expect(await bob(["export", older], broken.url)).toMatchObject({ exitCode: 1 });
    broken.close();
    const link = '</plants?limit=1&after=7>; rel="next"';
    const slow = await openScriptedService(
      { status: 200, headers: { link }, body: '[{"id":7,"name":"Fern","tag":""}]' },
      { status: 503, headers: { "retry-after": "60" } },
    );
    const exporting = bob(["export", older], slow.url);
    await waitFor(() => slow.requests.length === 2 || undefined);
    // By way of programs that pass a signal on, it comes twice.
    process.emit("SIGINT");
    process.emit("SIGTERM");
    expect((await exporting).exitCode).toBe(130);
    slow.close();
    const left = readdirSync(folder.path).filter((name) => name.includes("partial"));
    expect([readFileSync(older, "utf8"), ...left]).toEqual(["older\n"]);
  });
});

describe("another program", () => {
  test("or a busy service lists no plants", async () => {
    const stranger = await openScriptedService({ status: 200, body: "<html>" });
    expect(await bob("plants list", stranger.url)).toMatchObject({ exitCode: 1 });
    stranger.close();
    const busy = await openScriptedService(problemAnswer(503, "unavailable"));
    expect(await bob("plants list", busy.url)).toMatchObject({ exitCode: 6 });
    expect(busy.requests.length).toBe(3);
    busy.close();
  });

  test("that redirects is not taken for a service that is ready", async () => {
    const login = await openScriptedService({ status: 200, body: "<html>Sign in</html>" });
    const proxy = await openScriptedService({ status: 302, headers: { location: login.url } });
    const { exitCode, out, errors } = await bob("health", proxy.url);
    login.close();
    proxy.close();
    expect([exitCode, out, login.requests.length]).toEqual([6, "", 0]);
    expect(errors).toContain("doesn't respond like a Plant Store (status 302). Check its address.");
  });
});
