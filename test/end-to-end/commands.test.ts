/**
 * Commands that call a service, in scripts: `plants`, `whoami`, `export` and `import`. What they
 * refuse is in refusals.test.ts.
 */
import { afterAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../../testing/command.ts";
import { openGarden, serveHere, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { openScriptedService } from "../client/scripted-service.ts";

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

type Run = Awaited<ReturnType<typeof openGarden>>["run"];

/** Runs lines one after another, each with what it prints. It exits with 0 unless it says why. */
async function expectLines(
  run: Run,
  lines: readonly (readonly [line: string, out: string, exitCode?: number, errors?: string])[],
): Promise<void> {
  for (const [line, out, exitCode = 0, errors = ""] of lines) {
    const finished = await run(line);
    expect({ line, ...finished }).toEqual({ line, exitCode, out, errors });
  }
}

test("whoami shows user, garden, scope and expiry of the token, and counts the plants", async () => {
  const expiresAtMs = Date.parse("2099-01-01");
  const grant = { user: "whoever", garden: "shed", scope: "read", expiresAtMs } as const;
  const { run } = await openGarden(service, grant);
  expect(JSON.parse((await run("whoami")).out)).toEqual({
    ...{ user: "whoever", garden: "shed", scope: "read", plants: 0, lastEvent: 0 },
    expiresAt: "2099-01-01T00:00:00.000Z",
  });
  const written = await run("plants add Fern");
  expect(written).toMatchObject({ exitCode: 4, errors: expect.stringContaining("scope write") });
});

describe("plants", () => {
  test("are added, listed, changed in part and deleted, as JSON with exact ids", async () => {
    const { run } = await openGarden(service, { user: "alice" });
    const fern = '{"id":9007199254740993,"name":"Fern","tag":"shade"}';
    const moss = '{"id":-7,"name":"Moss","tag":""}';
    const missing = "plantstore: There is no plant 8. See plantstore plants list.\n";
    await expectLines(run, [
      ["plants add Fern --tag shade --id 9007199254740993", `${fern}\n`],
      ["plants add Moss --id=-7", `${moss}\n`],
      ["plants list", `[\n${moss},\n${fern}\n]\n`],
      ["plants list --limit 1", `[\n${moss}\n]\n`],
      ["plants list --tag shade", `[\n${fern}\n]\n`],
      ["plants get 9007199254740993 8 -- -7", `${fern}\n${moss}\n`, 3, missing],
      ["plants edit --name Ivy --tag hall -- -7", '{"id":-7,"name":"Ivy","tag":"hall"}\n'],
      ["plants edit --name Sage -- -7", '{"id":-7,"name":"Sage","tag":"hall"}\n'],
      ["plants edit --tag= -- -7", '{"id":-7,"name":"Sage","tag":""}\n'],
      [
        "plants rm 9007199254740993 8 -- -7",
        '{"id":9007199254740993,"confirmed":true}\n{"id":-7,"confirmed":true}\n',
        3,
        missing,
      ],
      ["plants ls", "[]\n"],
    ]);
    expect(JSON.parse((await run("whoami")).out)).toMatchObject({ plants: 0, lastEvent: 7 });
  });

  test("get a tag, many at once, and each that is missing is named", async () => {
    const { run } = await openGarden(service, { user: "editor" });
    for (const name of ["Fern", "Moss"]) await run(["plants", "add", name]);
    const missing = (id: number) =>
      `plantstore: There is no plant ${id}. See plantstore plants list.\n`;
    const fern = '{"id":1,"name":"Fern","tag":"hall"}\n';
    const moss = '{"id":2,"name":"Moss","tag":"hall"}\n';
    const onlyOne = "plantstore: --name is for one plant. Several plants can get the same --tag.\n";
    await expectLines(run, [
      ["plants edit 1 8 2 9 --tag hall", fern + moss, 3, missing(8) + missing(9)],
      ["plants edit 1 2 --name Ivy --tag pond", "", 2, onlyOne],
      ["plants list --tag hall", `[\n${fern.trim()},\n${moss.trim()}\n]\n`],
    ]);
  });

  test("are found by words, counted by tag, exported and deleted by tag or words", async () => {
    const { run } = await openGarden(service, { user: "finder" });
    const rows = ["1,Royal fern,pond", "2,Ivy,", "3,Tree fern,shade", "4,Moss,shade"];
    await run(["import", writeFile("found.csv", `id,name,tag\n${rows.join("\n")}\n`)]);
    const listed = [
      '{"id":1,"name":"Royal fern","tag":"pond"}',
      '{"id":2,"name":"Ivy","tag":""}',
      '{"id":3,"name":"Tree fern","tag":"shade"}',
      '{"id":4,"name":"Moss","tag":"shade"}',
    ] as const;
    const [royal, ivy, tree, moss] = listed;
    const tags = '[{"tag":"","plants":1},{"tag":"pond","plants":1},{"tag":"shade","plants":2}]';
    const unasked =
      'plantstore: Nothing was deleted. To delete 2 plants with the tag "shade" without being ' +
      "asked, add --yes.\n";
    await expectLines(run, [
      ["plants list --search FERN --newest", `[\n${tree},\n${royal}\n]\n`],
      ["plants list --newest --limit 1", `[\n${moss}\n]\n`],
      ["plants tags", `${tags}\n`],
      ["plants delete --tag shade", "", 2, unasked],
      ["plants list", `[\n${listed.join(",\n")}\n]\n`],
    ]);
    expect((await run("export --tag shade --format jsonl")).out).toBe(`${tree}\n${moss}\n`);
    await expectLines(run, [
      ["plants delete --tag shade --search moss --yes", '{"deleted":1,"missing":0}\n'],
      ["plants delete --search fern --yes", '{"deleted":2,"missing":0}\n'],
      ["plants delete --search fern", '{"deleted":0,"missing":0}\n'],
      ["plants list", `[\n${ivy}\n]\n`],
    ]);
  });
});

describe("an export", () => {
  test("to a new file can be read by its owner only; an older one keeps its mode and links", async () => {
    const path = join(folder.path, "private.jsonl");
    expect(await bob(["export", path])).toMatchObject({ exitCode: 0 });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const link = join(folder.path, "link.jsonl");
    symlinkSync(path, link);
    writeFileSync(path, "older\n");
    chmodSync(path, 0o640);
    expect(await bob(["export", link])).toMatchObject({ exitCode: 0 });
    expect([lstatSync(link).isSymbolicLink(), statSync(path).mode & 0o777]).toEqual([true, 0o640]);
    expect(readFileSync(path, "utf8")).toBe((await bob("export")).out);
  });

  test("that is interrupted leaves the older file, and nothing else", async () => {
    const older = writeFile("older.jsonl", "older\n");
    const link = '</plants?limit=1&after=7>; rel="next"';
    const slow = openScriptedService(
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

test("an export says so only once the file is there", async () => {
  const path = join(folder.path, "taken.jsonl");
  using slow = Bun.serve({
    port: 0,
    fetch({ url }) {
      // The second page.
      if (url.includes("after=7")) mkdirSync(path);
      const headers = { link: '</plants?limit=1&after=7>; rel="next"' };
      return Response.json(
        [{ id: 7, name: "Fern", tag: "" }],
        url.includes("after") ? {} : { headers },
      );
    },
  });
  const { exitCode, errors } = await bob(["export", path], slow.url.origin);
  expect(exitCode).toBe(1);
  expect(errors).toMatch(/^plantstore: Cannot write [^\n]+\n$/);
});

async function listNames(run: Run): Promise<string[]> {
  const listed = JSON.parse((await run("plants list")).out) as { name: string }[];
  return listed.map(({ name }) => name);
}

/** What an import prints on standard output. */
const summary = (stored: number, alreadyThere: number, refused: number) =>
  `${JSON.stringify({ stored, alreadyThere, refused })}\n`;

test("an import of an export gives the same plants, in every format and however often", async () => {
  const lines = [
    `{"id":${-(2n ** 63n)},"name":"a \\"quoted\\", name\\r\\nof two lines","tag":""}\n`,
    `{"id":${2n ** 53n + 1n},"name":"\\"id\\":1","tag":"盆栽 🌱"}\n`,
    `{"id":${2n ** 63n - 1n},"name":" \\\\u0041 ","tag":"=1+1"}\n`,
  ].join("");
  const { run } = await openGarden(service, { user: "erin" });
  const path = writeFile("awkward.jsonl", lines);
  const first = await run(["import", path]);
  expect(first).toMatchObject({ exitCode: 0, out: summary(3, 0, 0) });
  expect(first.errors).toMatch(/^Added 3 plants in \d+\.\d s\.\n$/);
  expect((await run(["import", path])).out).toBe(summary(0, 3, 0));
  expect((await run("export")).out).toBe(lines);
  for (const format of ["csv", "json"]) {
    const exported = await run(["export", join(folder.path, `awkward.${format}`)]);
    expect(exported).toMatchObject({ exitCode: 0, out: "" });
    const warning = "1 plant has a name or tag that starts with =";
    expect(exported.errors.includes(warning)).toBe(format === "csv");
    const { run: other } = await openGarden(service, { user: `erin-${format}` });
    const imported = await other(["import", join(folder.path, `awkward.${format}`)]);
    expect(imported.out).toBe(summary(3, 0, 0));
    expect((await other("export")).out).toBe(lines);
  }
});

test("a file is recognized by what is in it, and deleted plants come back by id or --again", async () => {
  const { run } = await openGarden(service, { user: "grace" });
  const text = '{"id":7,"name":"Rose"}\n{"name":"Fern"}\n{"name":"Moss"}\n';
  expect((await run(["import", writeFile("first.jsonl", text)])).out).toBe(summary(3, 0, 0));
  await run("plants delete 7 8");
  const again = await run("import -", service.url, text);
  const counts = { stored: 1, alreadyThere: 1, refused: 0, deletedSince: 1 };
  expect(again).toMatchObject({ exitCode: 0, out: `${JSON.stringify(counts)}\n` });
  expect(again.errors).toMatch(
    /^Added 1 plant in .+ s\. 1 was already there\. 1 was added by an earlier import and deleted since\. To import the whole file once more, add --again\.\n$/,
  );
  expect((await run("import - --again", service.url, text)).out).toBe(summary(2, 1, 0));
  const longer = writeFile("longer.jsonl", `${text}{"name":"Ivy"}\n`);
  expect((await run(["import", longer])).out).toBe(summary(3, 1, 0));
  expect(await listNames(run)).toEqual(["Rose", "Moss", "Fern", "Moss", "Fern", "Moss", "Ivy"]);
});

test("nothing is sent if a row is invalid, and every error is listed with its line", async () => {
  const path = writeFile("bad.csv", "id,name,tag\r\n1,Fern,\r\n,Moss,\r\n,,hall\r\nx,Ivy,\r\n");
  // So no service is needed to find out.
  const errors = "line 4: name must not be empty\nline 5: the id must be an integer";
  const refused = await runInProcess(["import", path]);
  expect(refused).toMatchObject({ exitCode: 2, out: summary(0, 0, 2) });
  expect(refused.errors).toStartWith(errors);
  expect(refused.errors).toEndWith(
    "plantstore: Nothing was sent: 2 of 4 rows are invalid. Fix them and import the file again.\n",
  );
  const dry = await runInProcess(["import", path, "--dry-run"]);
  expect(dry).toMatchObject({ exitCode: 2, out: '{"valid":2,"withoutId":1,"refused":2}\n' });
  expect(dry.errors).toStartWith(errors);
  expect(dry.errors).toEndWith("4 rows: 2 valid (1 without an id), 2 invalid. Nothing was sent.\n");
});

test("a row whose id another plant has is refused and says which, and the others are stored", async () => {
  const { run } = await openGarden(service, { user: "heidi" });
  await run("plants add Rose --id 7 --tag shade");
  const rows = [
    "id,name,tag",
    "7,Tulip,",
    ",Ivy,",
    "7,Rose,shade",
    "1,Fern,",
    "1,Fern,",
    "1,Moss,",
  ];
  const { exitCode, out, errors } = await run(["import", writeFile("taken.csv", rows.join("\n"))]);
  expect([exitCode, out]).toEqual([1, summary(2, 2, 2)]);
  expect(errors).toMatch(
    /^line 2: plant 7 is here as Rose \(shade\); --update would change it\nline 7: plant 1 is here as Fern; --update would change it\nAdded 2 plants in .+ s\. 2 were already there\. 2 rows were refused\.\nplantstore: To make these plants as the file has them, import it with --update\.\n$/,
  );
  expect(await listNames(run)).toEqual(["Fern", "Rose", "Ivy"]);
});

test("an import says in words which plants a service refuses that has other rules", async () => {
  const { run } = await openGarden(service, { user: "judy" });
  using stricter = Bun.serve({
    port: 0,
    async fetch({ method, url, headers, body }) {
      const { pathname, search } = new URL(url);
      const text = (await new Response(body).text()).replace("Ivy", "").replace("Moss", " ");
      const init = { method, headers, ...(text && { body: text }) };
      return fetch(service.url + pathname + search, init);
    },
  });
  const path = writeFile("refused.csv", "name\nFern\nIvy\nMoss\n");
  const { exitCode, errors } = await run(["import", path], stricter.url.origin);
  expect(exitCode).toBe(2);
  expect(errors).toEndWith(
    "plantstore: Plant 2: name must not be empty; Plant 3: name must not be only white space.\n",
  );
});

test("an import waits for a service that restarts", async () => {
  const { run } = await openGarden(service, { user: "patient" });
  let posts = 0;
  using proxy = Bun.serve({
    port: 0,
    async fetch(request) {
      // More often than commands try that a person waits for.
      if (request.method === "POST" && ++posts <= 3) return new Response(null, { status: 503 });
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = await request.text();
      const init = { method, headers, ...(body && { body }) };
      const response = await fetch(service.url + pathname + search, init);
      return new Response(await response.text(), response);
    },
  });
  const path = writeFile("patient.csv", "name\nFern\nIvy\n");
  expect(await run(["import", path], proxy.url.origin)).toMatchObject({
    exitCode: 0,
    out: summary(2, 0, 0),
  });
  expect(await listNames(run)).toEqual(["Fern", "Ivy"]);
});
