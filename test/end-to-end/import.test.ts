/** `plantstore import` against a running service: rows with and without ids, good and bad. */
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../command.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { openGarden, serveHere } from "./running-service.ts";

const folder = makeTemporaryFolder();
const service = await serveHere();
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

test("a file is recognized by what is in it, whatever its name; --again imports it once more", async () => {
  const { run } = await openGarden(service, { user: "grace" });
  const text = ["Fern", "Fern", "Moss"].map((name) => `{"name":"${name}"}\n`).join("");
  expect((await run(["import", writeFile("plain.jsonl", text)])).out).toBe(summary(3, 0, 0));
  expect((await run(["import", writeFile("copy.jsonl", text)])).out).toBe(summary(0, 3, 0));
  expect((await run("import -", service.url, text)).out).toBe(summary(0, 3, 0));
  expect((await run("import - --again", service.url, text)).out).toBe(summary(3, 0, 0));
  const longer = writeFile("plain.jsonl", `${text}{"name":"Rose"}\n`);
  expect((await run(["import", longer])).out).toBe(summary(4, 0, 0));
  expect(await listNames(run)).toHaveLength(10);
});

test("plants that were deleted since come back if their rows have ids, or with --again", async () => {
  const { run } = await openGarden(service, { user: "deleted" });
  const path = writeFile("deleted.csv", "id,name\n7,Rose\n,Fern\n,Moss\n");
  await run(["import", path]);
  await run("plants delete 7 8");
  const second = await run(["import", path]);
  expect(JSON.parse(second.out)).toEqual({
    stored: 1,
    alreadyThere: 1,
    refused: 0,
    deletedSince: 1,
  });
  expect(second.errors).toMatch(
    /^Added 1 plant in .+ s\. 1 was already there\. 1 was added by an earlier import and deleted since\. To import the whole file once more, add --again\.\n$/,
  );
  expect((await run(["import", path, "--again"])).out).toBe(summary(2, 1, 0));
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
  const open = await runInProcess([
    "import",
    writeFile("open.csv", 'name\nFern\n""\n"Moss\nIvy\n'),
  ]);
  expect(open.exitCode).toBe(2);
  expect(open.errors).toContain("Nothing was sent: the file can't be read past line 4. Fix it and");
});

test("a row whose id another plant has is refused and listed, and the others are stored", async () => {
  const { run } = await openGarden(service, { user: "heidi" });
  await run("plants add Rose --id 7");
  const rows = ["id,name", "7,Tulip", ",Ivy", "7,Rose", "1,Fern", "1,Fern", "1,Moss"];
  const { exitCode, out, errors } = await run(["import", writeFile("taken.csv", rows.join("\n"))]);
  expect([exitCode, out]).toEqual([1, summary(2, 2, 2)]);
  expect(errors).toMatch(
    /^line 2: another plant has the id 7\nline 7: another plant has the id 1\nAdded 2 plants in .+ s\. 2 were already there\. 2 rows were refused\.\nplantstore: Put the refused rows into another file/,
  );
  expect(await listNames(run)).toEqual(["Fern", "Rose", "Ivy"]);
});

test("an import that is interrupted says that it can go on, and then adds nothing twice", async () => {
  const { run } = await openGarden(service, { user: "interrupted" });
  // Several requests of rows with and without ids.
  const rows = Array.from({ length: 6_000 }, (_, index) =>
    `${index % 3 === 0 ? index + 1 : ""},Plant ${index} `.padEnd(150, "x"),
  );
  const path = writeFile("interrupted.csv", ["id,name", ...rows].join("\n"));
  let bulks = 0;
  using proxy = Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = await request.text();
      const init = { method, headers, ...(body && { body }) };
      const response = await fetch(service.url + pathname + search, init);
      if (method === "GET" || ++bulks < 4) return new Response(await response.text(), response);
      // It's stored, but the response is lost.
      process.emit("SIGINT");
      return new Promise<Response>(() => {});
    },
  });
  const first = await run(["import", path], proxy.url.origin);
  expect(first.exitCode).toBe(130);
  expect(first.errors).toContain("Run the same import again to go on: no plant is added twice.\n");
  expect(first.errors).toEndWith("plantstore: Stopped. Not all rows were sent.\n");
  const { exitCode, out } = await run(["import", path]);
  const { alreadyThere } = JSON.parse(out);
  expect(alreadyThere).toBeWithin(JSON.parse(first.out).stored + 1, 6_000);
  expect([exitCode, out]).toEqual([0, summary(6_000 - alreadyThere, alreadyThere, 0)]);
  const names = rows.map((row) => row.replace(/^\d*,/, ""));
  expect((await listNames(run)).toSorted()).toEqual(names.toSorted());
});

test("it ends at once where nobody listens, or when the token is refused", async () => {
  const { run } = await openGarden(service, { user: "mallory", scope: "read" });
  const path = writeFile("refused.csv", "name\nFern\n");
  const lost = await run(["import", path], "http://127.0.0.1:1");
  expect(lost).toMatchObject({ exitCode: 6, errors: expect.stringContaining("is refused.") });
  const refused = await run(["import", path]);
  expect(refused).toMatchObject({ exitCode: 4, out: summary(0, 0, 0) });
  expect(refused.errors).toContain("scope write");
});
