/** `plantstore import` against a running service: rows with and without ids, good and bad. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openFaultyProxy } from "../client/faulty-proxy.ts";
import { skipsWithout } from "../skipping.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { type RunningService, realProgram, runProgram, startService } from "./running-service.ts";

/** Each command is a process of its own, and a test runs several. */
setDefaultTimeout(120_000);

const folder = makeTemporaryFolder();
let service: RunningService;

beforeAll(async () => {
  service = await startService();
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

interface Options {
  readonly url?: string;
  /** In place of the program. */
  readonly command?: readonly string[];
  /** Standard input. */
  readonly text?: string;
  readonly variables?: Readonly<Record<string, string>>;
}

/** Runs commands against a garden of its own. */
async function openGarden(user: string, ...flags: string[]) {
  const create = ["token", "create", user, "--database", service.database, ...flags];
  const token = (await runProgram(create)).out.trim();
  return async (args: readonly string[], options: Options = {}) => {
    const { url = service.url, command = [process.execPath, realProgram] } = options;
    const { text, variables } = options;
    const child = Bun.spawn([...command, ...args], {
      env: { ...variables, PLANTSTORE_URL: url, PLANTSTORE_TOKEN: token },
      stdin: text === undefined ? "ignore" : new Blob([text]),
      stdout: "pipe",
      stderr: "pipe",
    });
    // With its byte order mark, which `text` would drop.
    const [out, errors, exitCode] = await Promise.all([
      child.stdout.bytes().then((bytes) => Buffer.from(bytes).toString()),
      child.stderr.text(),
      child.exited,
    ]);
    return { exitCode, out, errors };
  };
}

function writeFile(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
}

describe("an import", () => {
  const awkward = [
    { id: -(2n ** 63n), name: 'a "quoted", name\r\nof two lines', tag: "" },
    { id: 2n ** 53n + 1n, name: '"id":1', tag: "盆栽 🌱" },
    { id: 2n ** 63n - 1n, name: " \\u0041 ", tag: "=1+1" },
  ];
  const jsonLines = awkward.map(
    ({ id, name, tag }) =>
      `{"id":${id},"name":${JSON.stringify(name)},"tag":${JSON.stringify(tag)}}\n`,
  );

  test("then an export gives the same plants back, in either format, however often it runs", async () => {
    const run = await openGarden("erin");
    const many = Array.from(
      { length: 200 },
      (_, index) => `{"id":${index + 1},"name":"Plant ${index}","tag":"tag ${index % 7}"}\n`,
    );
    const lines = [jsonLines[0], ...many, ...jsonLines.slice(1)].join("");
    const path = writeFile("awkward.jsonl", lines);
    const first = await run(["import", path]);
    expect(first).toMatchObject({
      exitCode: 0,
      out: '{"stored":203,"alreadyThere":0,"refused":0}\n',
    });
    const second = await run(["import", path]);
    expect(second.out).toBe('{"stored":0,"alreadyThere":203,"refused":0}\n');
    expect(first.errors).toMatch(/^Added 203 plants in \d\.\d s\.\n$/);
    expect(second.errors).toMatch(/^Added 0 plants in \d\.\d s\. 203 were already there\.\n$/);
    expect((await run(["export"])).out).toBe(lines);

    const csv = join(folder.path, "awkward.csv");
    const exported = await run(["export", csv]);
    expect(exported).toMatchObject({ exitCode: 0, out: "" });
    expect(exported.errors).toContain("1 plant has a name or tag that starts with =");
    const other = await openGarden("frank");
    expect((await other(["import", csv])).out).toContain('"stored":203');
    expect((await other(["export", "-", "--format", "jsonl"])).out).toBe(lines);
  });

  test("of lines without ids can be run again, and goes on where it was cut off", async () => {
    const run = await openGarden("grace");
    const lines = ["Fern", "Fern", "Moss"].map((name) => `{"name":"${name}"}\n`);
    const path = writeFile("plain.jsonl", lines.join(""));
    expect((await run(["import", path])).out).toContain('"stored":3');
    expect((await run(["import", path])).out).toContain('"stored":0,"alreadyThere":3');
    writeFile("plain.jsonl", [...lines, '{"name":"Rose"}\n'].join(""));
    expect((await run(["import", path])).out).toContain('"stored":1,"alreadyThere":3');
    const names = JSON.parse((await run(["plants", "list"])).out).map(
      (plant: { name: string }) => plant.name,
    );
    expect(names.toSorted()).toEqual(["Fern", "Fern", "Moss", "Rose"]);
    expect((await run(["import", path, "--batch", "another"])).out).toContain('"stored":4');
    const line = writeFile("line.json", '[{"name":"Fern"},{"name":"Fern"}]');
    expect((await run(["import", line])).out).toContain('"stored":2');
    expect((await run(["import", line])).out).toContain('"alreadyThere":2');
  });

  test("names bad lines by their numbers, and stops before it sends anything, or goes on", async () => {
    const run = await openGarden("heidi");
    await run(["plants", "add", "Rose", "--id", "7"]);
    const rows = ["id,name", "1,Fern", "2,", "x,Moss", "7,Tulip", "7,Rose", "3,Ivy"];
    const path = writeFile("bad.csv", rows.join("\r\n"));
    const whole = await run(["import", path, "--on-error", "continue"]);
    expect(whole).toMatchObject({
      exitCode: 7,
      out: '{"stored":2,"alreadyThere":1,"refused":3}\n',
    });
    expect(whole.errors.split("\n").slice(0, 3)).toEqual([
      "line 3: name must not be empty",
      "line 4: the id must be an integer such as 7 or -7: only digits, no leading zeros",
      "line 5: another plant has the id 7",
    ]);
    const stopped = await (await openGarden("ivan"))(["import", path]);
    expect(stopped).toMatchObject({
      exitCode: 7,
      out: '{"stored":0,"alreadyThere":0,"refused":2}\n',
    });
    expect(stopped.errors).toStartWith("line 3: name must not be empty\nline 4: the id must be");
    expect(stopped.errors).toEndWith(
      "\nplantstore: Nothing was sent: 2 of 6 rows are invalid. " +
        "Fix them, or import the rest with --on-error continue.\n",
    );
  });

  test("lists up to 100 invalid rows, and says that --dry-run lists all", async () => {
    const run = await openGarden("many");
    const path = writeFile("many.csv", `name\n${'""\n'.repeat(101)}`);
    const { out, errors } = await run(["import", path]);
    expect(out).toBe('{"stored":0,"alreadyThere":0,"refused":101}\n');
    expect(errors).toContain("line 101: ");
    expect(errors).not.toContain("line 102: ");
    expect(errors).toContain("… and 1 more. --dry-run lists all.\n");
    expect(errors).toContain("Nothing was sent: 101 of 101 rows are invalid.");
    expect((await run(["import", path, "--dry-run"])).out).toContain('"refused":101');
  });

  test.each([
    ["1", 500],
    ["256", 2_000],
  ])(
    "stores every row with --concurrency %s, although some have ids and some don't",
    async (concurrency, length) => {
      const run = await openGarden(`mixed-${concurrency}`);
      // The rows without ids come first, where the service would assign 1, 2, 3, …
      const rows = Array.from({ length }, (_, index) =>
        index % 10 === 0 ? `,Plant ${index}` : `${index},Plant ${index}`,
      );
      const path = writeFile(`mixed-${concurrency}.csv`, ["id,name", ...rows, ""].join("\n"));
      const { exitCode, out } = await run(["import", path, "--concurrency", concurrency]);
      expect([exitCode, out]).toEqual([0, `{"stored":${length},"alreadyThere":0,"refused":0}\n`]);
      const listed = JSON.parse((await run(["plants", "list"])).out) as { name: string }[];
      expect(new Set(listed.map(({ name }) => name)).size).toBe(length);
    },
  );

  test("from standard input stores rows with ids first, too, and leaves no temporary file", async () => {
    const run = await openGarden("stdin");
    using spool = makeTemporaryFolder();
    const text = "id,name\n,Basil\n1,Aloe\n2,Cactus\n";
    const { exitCode, out } = await run(["import", "-", "--format", "csv"], {
      text,
      variables: { TMPDIR: spool.path },
    });
    expect([exitCode, out]).toEqual([0, '{"stored":3,"alreadyThere":0,"refused":0}\n']);
    expect((await run(["export", "--format", "csv"])).out).toBe(
      "\uFEFFid,name,tag\r\n1,Aloe,\r\n2,Cactus,\r\n3,Basil,\r\n",
    );
    expect(readdirSync(spool.path)).toEqual([]);
  });

  test("takes back what plants list --json and export write", async () => {
    const run = await openGarden("jason");
    for (const name of ["Fern", "Moss"]) await run(["plants", "add", name]);
    const listed = (await run(["plants", "list", "--json"])).out;
    const path = writeFile("p.json", listed);
    expect((await run(["import", path])).out).toContain('"alreadyThere":2');
    const other = await openGarden("jaspar");
    expect((await other(["import", "-"], { text: listed })).out).toContain('"stored":2');
    expect((await other(["export", "-", "--format", "json"])).out).toBe(listed);
  });

  test("reports refused rows in the order of the file", async () => {
    const run = await openGarden("order");
    await run(["plants", "add", "Rose", "--id", "7"]);
    const lines = Array.from({ length: 200 }, (_, index) =>
      index % 3 === 0 ? `{"id":7,"name":"Plant ${index}"}` : index % 3 === 1 ? '{"name" ' : "7",
    );
    const path = writeFile("order.jsonl", lines.join("\n"));
    const { errors } = await run(["import", path, "--on-error", "continue"]);
    const places = errors.split("\n").filter((line) => line.startsWith("line "));
    expect(places.map((place) => Number.parseInt(place.slice(5), 10))).toEqual(
      lines.map((_, index) => index + 1),
    );
    expect(places[1]).toStartWith("line 2: this is not a JSON object");
  });

  test("keeps the first of several rows of a request that have the same id", async () => {
    const run = await openGarden("twice");
    const rows = Array.from({ length: 300 }, (_, index) => `7,Plant ${index}`);
    const path = writeFile("twice.csv", ["id,name", ...rows].join("\n"));
    const { out, errors } = await run(["import", path, "--on-error", "continue"]);
    expect(out).toBe('{"stored":1,"alreadyThere":0,"refused":299}\n');
    expect(errors).toStartWith("line 3: another plant has the id 7\nline 4: ");
    expect((await run(["export"])).out).toBe('{"id":7,"name":"Plant 0","tag":""}\n');
  });

  test("recognizes rows without ids although others were fixed, and refuses a changed one", async () => {
    const run = await openGarden("fixed");
    // More than one request, each with a row that is refused and one that has an id.
    const rows = Array.from({ length: 1_200 }, (_, index) =>
      index % 400 === 10 ? ',""' : index % 400 === 20 ? `${9_000 + index},Fern` : `,Plant ${index}`,
    );
    const write = () => writeFile("fixed.csv", ["id,name", ...rows].join("\n"));
    const args = ["import", write(), "--on-error", "continue"];
    expect((await run(args)).out).toBe('{"stored":1197,"alreadyThere":0,"refused":3}\n');
    rows[10] = ",Rose";
    rows[410] = "8000,Moss";
    rows[810] = ",Ivy";
    rows[1_100] = ",Changed";
    write();
    const second = await run(args);
    expect(second.out).toBe('{"stored":3,"alreadyThere":1196,"refused":1}\n');
    expect(second.errors).toStartWith("line 1102: an earlier import added another plant");
  });

  test("adds rows without ids again whose plants were deleted, each time", async () => {
    const run = await openGarden("deleted");
    const path = writeFile("deleted.csv", "name\nFern\nMoss\nIvy\n");
    const add = async () => JSON.parse((await run(["import", path])).out);
    expect(await add()).toMatchObject({ stored: 3, alreadyThere: 0 });
    await run(["plants", "delete", "1", "3"]);
    expect(await add()).toMatchObject({ stored: 2, alreadyThere: 1 });
    await run(["plants", "delete", "4"]);
    expect(await add()).toMatchObject({ stored: 1, alreadyThere: 2 });
    expect(JSON.parse((await run(["plants", "list"])).out)).toHaveLength(3);
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
    "writes refused rows to a file that can be fixed and imported: %s",
    async (format, text, ...good) => {
      const run = await openGarden(`rejects-${format}`);
      const rejects = join(folder.path, `refused.${format}`);
      const args = ["import", writeFile(`all.${format}`, text), "--rejects", rejects];
      const first = await run(args);
      expect(first).toMatchObject({
        exitCode: 7,
        out: '{"stored":2,"alreadyThere":0,"refused":2}\n',
      });
      expect(first.errors).toContain(`The refused rows are in ${rejects}.`);
      const corrected = readFileSync(rejects, "utf8")
        .replace(/.*"".*/, good[0])
        .replace(/.*(?:x|7).*/, good[1]);
      // What is there may have been corrected already, so it isn't replaced.
      expect(await run(args)).toMatchObject({ exitCode: 2, out: "" });
      writeFileSync(rejects, corrected);
      expect((await run(["import", rejects])).out).toContain(
        '"stored":2,"alreadyThere":0,"refused":0',
      );
      const listed = JSON.parse((await run(["plants", "list"])).out) as { name: string }[];
      const names = listed.map(({ name }) => name.split("\n")[0]).toSorted();
      expect(names).toEqual(["Fern", "Ivy", "Moss", "Rose"]);
    },
  );

  test.each([
    ["a quote is not closed", "csv", 'name\nFern\n""\n"Moss\nIvy\n', "line 4"],
    ["an array is cut off after a row", "json", '[{"name":"Fern"},{"name":""}', "line 1"],
    ["an array is cut off in a row", "json", '[{"name":""},\n{"name":"Fe', "line 2, column 1"],
  ])("writes no refused rows, and doesn't advise to, if %s", async (_what, format, text, place) => {
    const run = await openGarden("unclosed");
    const rejects = join(folder.path, `rest.${format}`);
    const path = writeFile(`unclosed.${format}`, text);
    const stopped = await run(["import", path]);
    expect(stopped.exitCode).toBe(7);
    expect(stopped.errors).toContain(`Nothing was sent: the file can't be read past ${place}.`);
    expect(stopped.errors).not.toContain("--on-error");
    const skipping = await run(["import", path, "--rejects", rejects]);
    expect(skipping.exitCode).toBe(7);
    expect(skipping.errors).toContain(
      `was not written: the file could not be read to its end (${place}).`,
    );
    expect(existsSync(rejects)).toBe(false);
  });

  test("that is a dry run reports every bad row, and calls nobody", async () => {
    const path = writeFile("dry.csv", "id,name,tag\n1,Fern,\n,Moss,\n,,hall\n2,Ivy\n");
    const dry = await runProgram(["import", path, "--dry-run"]);
    expect(dry).toMatchObject({ exitCode: 7, out: '{"valid":2,"withoutId":1,"refused":2}\n' });
    expect(dry.errors).toBe(
      "line 4: name must not be empty\nline 5: expected 3 fields, found 2\n" +
        "4 rows: 2 valid (1 without an id), 2 invalid. Nothing was sent.\n",
    );
  });

  test.skipIf(skipsWithout("script"))(
    "shows at a terminal how many rows are stored, not how much of the file is read",
    async () => {
      const run = await openGarden("patient");
      const slow = Bun.serve({
        port: 0,
        async fetch(request) {
          await Bun.sleep(300);
          const body = await request.text();
          const { method, headers } = request;
          return fetch(service.url + new URL(request.url).pathname, { method, headers, body });
        },
      });
      const path = writeFile("slow.csv", `name\n${"Fern\n".repeat(4 * 512)}`);
      const line = `${process.execPath} ${realProgram} import ${path} --concurrency 1`;
      const { out } = await run([], {
        url: slow.url.origin,
        command: ["script", "-qec", line, "/dev/null"],
        variables: { TERM: "xterm", PATH: process.env.PATH ?? "" },
      });
      await slow.stop(true);
      const found = [...out.matchAll(/(\d+) %, ([\d,]+) plants/g)];
      const shares = found.map(([, share, count]) => [share, count]);
      expect(shares).toContainEqual(["25", "512"]);
      expect(shares).toContainEqual(["75", "1,536"]);
      expect(shares).not.toContainEqual(["100", "512"]);
    },
  );

  test("doubles nothing although connections break all the time", async () => {
    const run = await openGarden("judy");
    const proxy = await openFaultyProxy(service.url);
    const length = 10_000;
    const lines = Array.from({ length }, (_, index) => `{"name":"Plant ${index}"}\n`);
    const path = writeFile("unlucky.jsonl", lines.join(""));
    const breakages = Array.from({ length: 5 }, () => ["after", "before", "midway"] as const);
    // The first request finds out whether there is a service at all.
    proxy.breakNext(undefined, ...breakages.flat());
    const { exitCode } = await run(["import", path], { url: proxy.url });
    proxy.close();
    expect(exitCode).toBe(0);
    const listed = JSON.parse((await run(["plants", "list"])).out) as { name: string }[];
    expect(listed.length).toBe(length);
    expect(new Set(listed.map(({ name }) => name)).size).toBe(length);
  });

  test("that is interrupted while it reads standard input says that nothing was sent", async () => {
    await using child = Bun.spawn([process.execPath, realProgram, "import", "-"], {
      env: { PLANTSTORE_URL: service.url, PLANTSTORE_TOKEN: service.token },
      ...{ stdin: "pipe", stdout: "ignore", stderr: "pipe" },
    });
    // More than a pipe holds, so it is reading by then.
    child.stdin.write(" ".repeat(2 ** 20));
    await child.stdin.flush();
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
    expect(await child.stderr.text()).toBe("plantstore: Stopped. Nothing was sent.\n");
  });

  test("to a port where nobody listens fails soon, and names the URL", async () => {
    const run = await openGarden("lost");
    const url = "http://127.0.0.1:1";
    const { exitCode, errors } = await run(["import", writeFile("lost.csv", "name\n")], { url });
    expect(exitCode).toBe(6);
    expect(errors).toStartWith(`plantstore: No response from ${url}: the connection is refused.`);
  });

  test("ends at once when the token is refused, and says what was stored", async () => {
    const run = await openGarden("mallory", "--scope", "read");
    const path = writeFile("refused.csv", "name\nFern\nMoss\n");
    const result = await run(["import", path]);
    expect(result).toMatchObject({ exitCode: 4, errors: expect.stringContaining("scope write") });
    expect(result.out).toBe('{"stored":0,"alreadyThere":0,"refused":0}\n');
  });
});
