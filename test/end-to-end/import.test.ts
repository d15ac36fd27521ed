/** `plantstore import` against a running service: rows with and without ids, good and bad. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openFaultyProxy } from "../client/faulty-proxy.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { openGarden, runProgram, startService } from "./running-service.ts";

/** Each command is a process of its own, and a test runs several. */
setDefaultTimeout(120_000);

const folder = makeTemporaryFolder();
const service = await startService();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

function writeFile(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
}

type Garden = Awaited<ReturnType<typeof openGarden>>;

async function listNames(run: Garden): Promise<string[]> {
  const listed = JSON.parse((await run(["plants", "list"])).out) as { name: string }[];
  return listed.map(({ name }) => name);
}

/** What an import prints on standard output. */
const summary = (stored: number, alreadyThere: number, refused: number) =>
  `${JSON.stringify({ stored, alreadyThere, refused })}\n`;

test("an import of an export gives the same plants, in every format and however often", async () => {
  const awkward = [
    { id: -(2n ** 63n), name: 'a "quoted", name\r\nof two lines', tag: "" },
    ...Array.from({ length: 200 }, (_, index) => ({
      id: BigInt(index + 1),
      name: `Plant ${index}`,
      tag: `tag ${index % 7}`,
    })),
    { id: 2n ** 53n + 1n, name: '"id":1', tag: "盆栽 🌱" },
    { id: 2n ** 63n - 1n, name: " \\u0041 ", tag: "=1+1" },
  ];
  const lines = awkward.map(
    ({ id, name, tag }) =>
      `{"id":${id},"name":${JSON.stringify(name)},"tag":${JSON.stringify(tag)}}\n`,
  );
  const run = await openGarden(service, { user: "erin" });
  const path = writeFile("awkward.jsonl", lines.join(""));
  const first = await run(["import", path]);
  expect(first).toMatchObject({ exitCode: 0, out: summary(203, 0, 0) });
  expect(first.errors).toMatch(/^Added 203 plants in \d+\.\d s\.\n$/);
  expect((await run(["import", path])).out).toBe(summary(0, 203, 0));
  expect((await run(["export"])).out).toBe(lines.join(""));
  for (const format of ["csv", "json"]) {
    const exported = await run(["export", join(folder.path, `awkward.${format}`)]);
    expect(exported).toMatchObject({ exitCode: 0, out: "" });
    const warning = "1 plant has a name or tag that starts with =";
    expect(exported.errors.includes(warning)).toBe(format === "csv");
    const other = await openGarden(service, { user: `erin-${format}` });
    const imported = await other(["import", join(folder.path, `awkward.${format}`)]);
    expect(imported.out).toBe(summary(203, 0, 0));
    expect((await other(["export"])).out).toBe(lines.join(""));
  }
});

test("rows without ids can be imported again, and go on where the import was cut off", async () => {
  const run = await openGarden(service, { user: "grace" });
  const lines = ["Fern", "Fern", "Moss"].map((name) => `{"name":"${name}"}\n`);
  const path = writeFile("plain.jsonl", lines.join(""));
  expect((await run(["import", path])).out).toBe(summary(3, 0, 0));
  expect((await run(["import", path])).out).toBe(summary(0, 3, 0));
  writeFile("plain.jsonl", [...lines, '{"name":"Rose"}\n'].join(""));
  expect((await run(["import", path])).out).toBe(summary(1, 3, 0));
  expect((await listNames(run)).toSorted()).toEqual(["Fern", "Fern", "Moss", "Rose"]);
  expect((await run(["import", path, "--batch", "another"])).out).toBe(summary(4, 0, 0));
});

test("rows without ids whose plants were deleted are added again", async () => {
  const run = await openGarden(service, { user: "deleted" });
  const path = writeFile("deleted.csv", "name\nFern\nMoss\nIvy\n");
  await run(["import", path]);
  await run(["plants", "delete", "1", "3"]);
  expect((await run(["import", path])).out).toBe(summary(2, 1, 0));
});

test("rows without ids are recognized although others were fixed; a changed one is refused", async () => {
  const run = await openGarden(service, { user: "fixed" });
  // More than one request, each with a row that is refused and one that has an id.
  const rows = Array.from({ length: 1_200 }, (_, index) =>
    index % 400 === 10 ? ',""' : index % 400 === 20 ? `${9_000 + index},Fern` : `,Plant ${index}`,
  );
  const write = () => writeFile("fixed.csv", ["id,name", ...rows].join("\n"));
  const args = ["import", write(), "--on-error", "continue"];
  expect((await run(args)).out).toBe(summary(1197, 0, 3));
  rows[10] = ",Rose";
  rows[410] = "8000,Moss";
  rows[810] = ",Ivy";
  rows[1_100] = ",Changed";
  write();
  const second = await run(args);
  expect(second.out).toBe(summary(3, 1196, 1));
  expect(second.errors).toStartWith("line 1102: an earlier import added another plant");
});

test("a row that is refused in an empty garden puts no placeholder there", async () => {
  const run = await openGarden(service, { user: "refused" });
  const path = writeFile("mismatched.csv", "name\nFern\n");
  await run(["import", path]);
  await run(["plants", "delete", "1"]);
  writeFile("mismatched.csv", "name\nMoss\n");
  expect((await run(["import", path])).out).toBe(summary(0, 0, 1));
  const events = (await run(["events"])).out.trimEnd().split("\n");
  const types = events.map((line) => JSON.parse(line).type);
  expect(types).toEqual(["plant.created", "plant.deleted"]);
});

test("the first row can be fixed, too, although the garden was empty", async () => {
  const run = await openGarden(service, { user: "empty" });
  const rows = ["name", '""', "Fern", "Moss"];
  const write = () => writeFile("first.csv", rows.join("\n"));
  const first = await run(["import", write(), "--on-error", "continue"]);
  expect(first.out).toBe(summary(2, 0, 1));
  expect(await listNames(run)).toEqual(["Fern", "Moss"]);
  rows[1] = "Ivy";
  expect((await run(["import", write()])).out).toBe(summary(1, 2, 0));
  expect(await listNames(run)).toEqual(["Fern", "Moss", "Ivy"]);
});

test("bad lines are named by their numbers; nothing is sent, or the others are stored", async () => {
  const run = await openGarden(service, { user: "heidi" });
  await run(["plants", "add", "Rose", "--id", "7"]);
  const rows = ["id,name", "1,Fern", "2,", "x,Moss", "7,Tulip", "7,Rose", "3,Ivy"];
  const path = writeFile("bad.csv", rows.join("\r\n"));
  const stopped = await run(["import", path]);
  expect(stopped).toMatchObject({ exitCode: 7, out: summary(0, 0, 2) });
  expect(stopped.errors).toStartWith("line 3: name must not be empty\nline 4: the id must be");
  expect(stopped.errors).toContain("Nothing was sent: 2 of 6 rows are invalid.");
  const whole = await run(["import", path, "--on-error", "continue"]);
  expect(whole).toMatchObject({ exitCode: 7, out: summary(2, 1, 3) });
  expect(whole.errors).toContain("\nline 5: another plant has the id 7\n");
});

test.each([
  ["1", 1_200],
  ["256", 2_000],
])("rows with ids are stored first, with --concurrency %s, too", async (concurrency, length) => {
  const run = await openGarden(service, { user: `mixed-${concurrency}` });
  // The rows without ids come first, where the service would assign 1, 2, 3, …
  const rows = Array.from({ length }, (_, index) =>
    index % 2 === 0 ? `,Plant ${index}` : `${index},Plant ${index}`,
  );
  const path = writeFile(`mixed-${concurrency}.csv`, ["id,name", ...rows, ""].join("\n"));
  const { exitCode, out } = await run(["import", path, "--concurrency", concurrency]);
  expect([exitCode, out]).toEqual([0, summary(length, 0, 0)]);
  const names = await listNames(run);
  expect(new Set(names).size).toBe(length);
  if (concurrency !== "1") return;
  // One request at a time, in the order of the file.
  const assigned = rows.filter((row) => row.startsWith(",")).map((row) => row.slice(1));
  expect(names.filter((name) => assigned.includes(name))).toEqual(assigned);
});

test("rows come from standard input, too", async () => {
  const run = await openGarden(service, { user: "stdin" });
  const rows = new Blob(["id,name\n,Basil\n1,Aloe\n2,Cactus\n"]);
  const imported = await run(["import", "-", "--format", "csv"], service.url, rows);
  expect(imported).toMatchObject({ exitCode: 0, out: summary(3, 0, 0) });
  expect(await listNames(run)).toEqual(["Aloe", "Cactus", "Basil"]);
});

test.each([
  ["csv", 'name,id\r\nIvy,\r\n"",\r\nMoss,x\r\n"Rose\nred",', "Fern,", "Moss,"],
  [
    "json",
    '[{"name":"Ivy"},{\n"name":""\n},7,{"name":"Rose"}]',
    '{"name":"Fern"}',
    '{"name":"Moss"}',
  ],
])(
  "refused rows go to a file that can be fixed and imported: %s",
  async (format, text, ...good) => {
    const run = await openGarden(service, { user: `rejects-${format}` });
    const rejects = join(folder.path, `refused.${format}`);
    const args = ["import", writeFile(`all.${format}`, text), "--rejects", rejects];
    const first = await run(args);
    expect(first).toMatchObject({ exitCode: 7, out: summary(2, 0, 2) });
    expect(first.errors).toContain(`The refused rows are in ${rejects}.`);
    // What is there may have been corrected already, so it isn't replaced.
    expect(await run(args)).toMatchObject({ exitCode: 2, out: "" });
    const corrected = readFileSync(rejects, "utf8")
      .replace(/.*"".*/, good[0])
      .replace(/.*(?:x|7).*/, good[1]);
    writeFileSync(rejects, corrected);
    expect((await run(["import", rejects])).out).toBe(summary(2, 0, 0));
    const names = (await listNames(run)).map((name) => name.split("\n")[0]);
    expect(names.toSorted()).toEqual(["Fern", "Ivy", "Moss", "Rose"]);
  },
);

test.each([
  ["a quote is not closed", "csv", 'name\nFern\n""\n"Moss\nIvy\n', "line 4"],
  ["an array is cut off in a row", "json", '[{"name":""},\n{"name":"Fe', "line 2, column 12"],
])("nothing is read on, nor written to --rejects, if %s", async (_what, format, text, place) => {
  const run = await openGarden(service, { user: `unclosed-${format}` });
  const rejects = join(folder.path, `rest.${format}`);
  const path = writeFile(`unclosed.${format}`, text);
  const stopped = await run(["import", path, "--rejects", rejects]);
  expect(stopped.exitCode).toBe(7);
  expect(stopped.errors).toContain(`the file could not be read to its end (${place}).`);
  expect(existsSync(rejects)).toBe(false);
});

test("a dry run reports every bad row, and calls nobody", async () => {
  const path = writeFile("dry.csv", "id,name,tag\n1,Fern,\n,Moss,\n,,hall\n2,Ivy\n");
  const dry = await runProgram(["import", path, "--dry-run"]);
  expect(dry).toMatchObject({ exitCode: 7, out: '{"valid":2,"withoutId":1,"refused":2}\n' });
  expect(dry.errors).toBe(
    "line 4: name must not be empty\nline 5: expected 3 fields, found 2\n" +
      "4 rows: 2 valid (1 without an id), 2 invalid. Nothing was sent.\n",
  );
});

test("nothing is doubled although connections break all the time", async () => {
  const run = await openGarden(service, { user: "judy" });
  const proxy = await openFaultyProxy(service.url);
  const names = Array.from({ length: 6_000 }, (_, index) => `Plant ${index}`);
  const path = writeFile("unlucky.csv", ["name", ...names, ""].join("\n"));
  const breakages = Array.from({ length: 4 }, () => ["after", "before", "midway"] as const);
  // The first request finds out whether there is a service at all.
  proxy.breakNext(undefined, ...breakages.flat());
  const { exitCode } = await run(["import", path], proxy.url);
  proxy.close();
  expect(exitCode).toBe(0);
  expect((await listNames(run)).toSorted()).toEqual(names.toSorted());
});

test("it ends at once where nobody listens, or when the token is refused", async () => {
  const run = await openGarden(service, { user: "mallory", scope: "read" });
  const path = writeFile("refused.csv", "name\nFern\n");
  const lost = await run(["import", path], "http://127.0.0.1:1");
  expect(lost).toMatchObject({ exitCode: 6, errors: expect.stringContaining("is refused.") });
  const refused = await run(["import", path]);
  expect(refused).toMatchObject({ exitCode: 4, out: summary(0, 0, 0) });
  expect(refused.errors).toContain("scope write");
});
