/**
 * `plantstore export` and `import`, in scripts: the same plants come back, and nothing is added
 * twice. `import --update` is in import-update.test.ts, and what is refused in refusals.test.ts.
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
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

let gardensOpened = 0;

/** `run` runs commands in an empty garden that no other test uses. */
const openNewGarden = () => openGarden(service, { user: `user-${++gardensOpened}` });

type Run = Awaited<ReturnType<typeof openGarden>>["run"];

/** Each test uses file names of its own. */
const pathOf = (name: string) => join(folder.path, name);

function writeFile(name: string, text: string): string {
  writeFileSync(pathOf(name), text);
  return pathOf(name);
}

async function listNames(run: Run): Promise<string[]> {
  const listed = JSON.parse((await run("plants list")).out) as { name: string }[];
  return listed.map(({ name }) => name);
}

describe("an export", () => {
  test("--tag writes only the plants with a tag", async () => {
    const { run } = await openNewGarden();
    await run("plants add Ivy");
    await run("plants add Fern --tag shade");
    await run("plants add Moss --tag shade");

    const { out } = await run("export --tag shade --format jsonl");

    expect(out).toBe(
      '{"id":2,"name":"Fern","tag":"shade"}\n{"id":3,"name":"Moss","tag":"shade"}\n',
    );
  });

  test("to a new file can be read by its owner only", async () => {
    const { run } = await openNewGarden();
    const path = pathOf("private.jsonl");

    expect(await run(["export", path])).toMatchObject({ exitCode: 0 });

    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("to an older file replaces its text, and keeps its mode", async () => {
    const { run } = await openNewGarden();
    await run("plants add Fern");
    const path = writeFile("shared.jsonl", "older\n");
    chmodSync(path, 0o640);

    expect(await run(["export", path])).toMatchObject({ exitCode: 0 });

    expect(readFileSync(path, "utf8")).toBe('{"id":1,"name":"Fern","tag":""}\n');
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  test("to a link replaces the file that it leads to, and keeps the link", async () => {
    const { run } = await openNewGarden();
    await run("plants add Fern");
    const path = writeFile("linked.jsonl", "older\n");
    const link = pathOf("link.jsonl");
    symlinkSync(path, link);
    chmodSync(path, 0o640);

    expect(await run(["export", link])).toMatchObject({ exitCode: 0 });

    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readFileSync(path, "utf8")).toBe('{"id":1,"name":"Fern","tag":""}\n');
    expect(statSync(path).mode & 0o777).toBe(0o640);
  });

  test("to a file writes the same as to standard output", async () => {
    const { run } = await openNewGarden();
    await run("plants add Fern");
    const path = pathOf("same.jsonl");

    await run(["export", path]);

    expect(readFileSync(path, "utf8")).toBe((await run("export")).out);
  });

  test("that is interrupted leaves the older file, and nothing else", async () => {
    const { run } = await openNewGarden();
    const path = writeFile("older.jsonl", "older\n");
    const slow = openScriptedService(
      {
        status: 200,
        headers: { link: '</plants?limit=1&after=7>; rel="next"' },
        body: '[{"id":7,"name":"Fern","tag":""}]',
      },
      { status: 503, headers: { "retry-after": "60" } },
    );
    const exporting = run(["export", path], slow.url);
    await waitFor(() => slow.requests.length === 2 || undefined);

    // By way of programs that pass a signal on, it comes twice.
    process.emit("SIGINT");
    process.emit("SIGTERM");

    expect((await exporting).exitCode).toBe(130);
    slow.close();
    expect(readFileSync(path, "utf8")).toBe("older\n");
    expect(readdirSync(folder.path).filter((name) => name.includes("partial"))).toEqual([]);
  });

  test("that cannot put its file in place doesn't say that it exported anything", async () => {
    const { run } = await openNewGarden();
    const path = pathOf("taken.jsonl");
    using slow = Bun.serve({
      port: 0,
      fetch({ url }) {
        const page = [{ id: 7, name: "Fern", tag: "" }];
        if (!url.includes("after=7")) {
          return Response.json(page, {
            headers: { link: '</plants?limit=1&after=7>; rel="next"' },
          });
        }
        // While the second page is read, a folder takes the file's name.
        mkdirSync(path);
        return Response.json(page);
      },
    });

    const { exitCode, errors } = await run(["export", path], slow.url.origin);

    expect(exitCode).toBe(1);
    expect(errors).toMatch(/^plantstore: Cannot write [^\n]+\n$/);
  });
});

describe("plants with names and tags that are hard to quote", () => {
  const awkwardPlants =
    '{"id":-9223372036854775808,"name":"a \\"quoted\\", name\\r\\nof two lines","tag":""}\n' +
    '{"id":9007199254740993,"name":"\\"id\\":1","tag":"盆栽 🌱"}\n' +
    '{"id":9223372036854775807,"name":" \\\\u0041 ","tag":"=1+1"}\n';

  async function openAwkwardGarden() {
    const garden = await openNewGarden();
    const imported = await garden.run("import -", service.url, awkwardPlants);
    expect(imported.out).toBe('{"stored":3,"alreadyThere":0,"refused":0}\n');
    return garden;
  }

  test("are exported exactly as they were imported", async () => {
    const { run } = await openAwkwardGarden();

    expect((await run("export")).out).toBe(awkwardPlants);
  });

  test("are already there when they are imported again", async () => {
    const { run } = await openAwkwardGarden();

    const { out } = await run("import -", service.url, awkwardPlants);

    expect(out).toBe('{"stored":0,"alreadyThere":3,"refused":0}\n');
    expect((await run("export")).out).toBe(awkwardPlants);
  });

  test.each(["csv", "json"])(
    "are the same in another garden that imports the export, as %s",
    async (format) => {
      const { run } = await openAwkwardGarden();
      const { run: runInOther } = await openNewGarden();
      const path = pathOf(`awkward.${format}`);

      const exported = await run(["export", path]);
      const imported = await runInOther(["import", path]);

      expect(exported).toMatchObject({ exitCode: 0, out: "" });
      expect(imported.out).toBe('{"stored":3,"alreadyThere":0,"refused":0}\n');
      expect((await runInOther("export")).out).toBe(awkwardPlants);
    },
  );

  const formulaWarning = "1 plant has a name or tag that starts with =";

  test("get a warning about formulas in an export for spreadsheets", async () => {
    const { run } = await openAwkwardGarden();

    expect((await run(["export", pathOf("formula.csv")])).errors).toContain(formulaWarning);
  });

  test("get no warning about formulas in an export as JSON", async () => {
    const { run } = await openAwkwardGarden();

    expect((await run(["export", pathOf("formula.json")])).errors).not.toContain(formulaWarning);
  });
});

describe("an import", () => {
  test("adds the plants of a file, and says how many", async () => {
    const { run } = await openNewGarden();
    const path = writeFile("three.jsonl", '{"name":"Rose"}\n{"name":"Fern"}\n{"name":"Moss"}\n');

    const { exitCode, out, errors } = await run(["import", path]);

    expect(exitCode).toBe(0);
    expect(out).toBe('{"stored":3,"alreadyThere":0,"refused":0}\n');
    expect(errors).toMatch(/^Added 3 plants in \d+\.\d s\.\n$/);
    expect(await listNames(run)).toEqual(["Rose", "Fern", "Moss"]);
  });

  test("says in words which plants a service with other rules refuses", async () => {
    const { run } = await openNewGarden();
    const path = writeFile("refused.csv", "name\nFern\nIvy\nMoss\n");
    using stricterService = Bun.serve({
      port: 0,
      async fetch(request) {
        const body = await request.text();
        return forward(request, body.replace("Ivy", "").replace("Moss", " "));
      },
    });

    const { exitCode, errors } = await run(["import", path], stricterService.url.origin);

    expect(exitCode).toBe(2);
    expect(errors).toEndWith(
      "plantstore: Plant 2: name must not be empty; Plant 3: name must not be only white space.\n",
    );
  });

  test("waits for a service that restarts", async () => {
    const { run } = await openNewGarden();
    const path = writeFile("patient.csv", "name\nFern\nIvy\n");
    let posts = 0;
    using restarting = Bun.serve({
      port: 0,
      async fetch(request) {
        if (request.method === "POST") posts++;
        // More often than commands try that a person waits for.
        if (request.method === "POST" && posts <= 3) return new Response(null, { status: 503 });
        return forward(request, await request.text());
      },
    });

    const { exitCode, out } = await run(["import", path], restarting.url.origin);

    expect(exitCode).toBe(0);
    expect(out).toBe('{"stored":2,"alreadyThere":0,"refused":0}\n');
    expect(await listNames(run)).toEqual(["Fern", "Ivy"]);
  });
});

/** Passes a request on to the service, with this body. */
async function forward({ url, method, headers }: Request, body: string): Promise<Response> {
  const { pathname, search } = new URL(url);
  const init = { method, headers, ...(body && { body }) };
  const response = await fetch(service.url + pathname + search, init);
  return new Response(await response.text(), response);
}

describe("a file that is imported again", () => {
  const roseFernMoss = '{"id":7,"name":"Rose"}\n{"name":"Fern"}\n{"name":"Moss"}\n';

  async function openGardenWithImport() {
    const garden = await openNewGarden();
    const first = await garden.run(["import", writeFile("first.jsonl", roseFernMoss)]);
    expect(first.out).toBe('{"stored":3,"alreadyThere":0,"refused":0}\n');
    return garden;
  }

  test("adds nothing, even under another name", async () => {
    const { run } = await openGardenWithImport();

    const { exitCode, out } = await run("import -", service.url, roseFernMoss);

    expect(exitCode).toBe(0);
    expect(out).toBe('{"stored":0,"alreadyThere":3,"refused":0}\n');
    expect(await listNames(run)).toEqual(["Rose", "Fern", "Moss"]);
  });

  test("brings back a deleted plant only if its row has an id, and says so", async () => {
    const { run } = await openGardenWithImport();
    await run("plants delete 7 8");

    const { exitCode, out, errors } = await run("import -", service.url, roseFernMoss);

    expect(exitCode).toBe(0);
    expect(out).toBe('{"stored":1,"alreadyThere":1,"refused":0,"deletedSince":1}\n');
    expect(errors).toMatch(
      /^Added 1 plant in .+ s\. 1 was already there\. 1 was added by an earlier import and deleted since\. To import the whole file once more, add --again\.\n$/,
    );
    expect(await listNames(run)).toEqual(["Rose", "Moss"]);
  });

  test("with --again adds the rows without ids once more", async () => {
    const { run } = await openGardenWithImport();

    const { out } = await run("import - --again", service.url, roseFernMoss);

    expect(out).toBe('{"stored":2,"alreadyThere":1,"refused":0}\n');
    expect(await listNames(run)).toEqual(["Rose", "Fern", "Moss", "Fern", "Moss"]);
  });

  test("with another row is another file, whose rows without ids are new", async () => {
    const { run } = await openGardenWithImport();

    const { out } = await run("import -", service.url, `${roseFernMoss}{"name":"Ivy"}\n`);

    expect(out).toBe('{"stored":3,"alreadyThere":1,"refused":0}\n');
    expect(await listNames(run)).toEqual(["Rose", "Fern", "Moss", "Fern", "Moss", "Ivy"]);
  });
});

describe("a file with invalid rows", () => {
  const invalidRows = "id,name,tag\r\n1,Fern,\r\n,Moss,\r\n,,hall\r\nx,Ivy,\r\n";
  const errorsWithLines = "line 4: name must not be empty\nline 5: the id must be an integer";

  test("is refused before a service is called, with the line of every error", async () => {
    const path = writeFile("invalid.csv", invalidRows);

    const { exitCode, out, errors } = await runInProcess(["import", path]);

    expect(exitCode).toBe(2);
    expect(out).toBe('{"stored":0,"alreadyThere":0,"refused":2}\n');
    expect(errors).toStartWith(errorsWithLines);
    expect(errors).toEndWith(
      "plantstore: Nothing was sent: 2 of 4 rows are invalid. Fix them and import the file again.\n",
    );
  });

  test("is checked by --dry-run, with the same errors", async () => {
    const path = writeFile("dry.csv", invalidRows);

    const { exitCode, out, errors } = await runInProcess(["import", path, "--dry-run"]);

    expect(exitCode).toBe(2);
    expect(out).toBe('{"valid":2,"withoutId":1,"refused":2}\n');
    expect(errors).toStartWith(errorsWithLines);
    expect(errors).toEndWith("4 rows: 2 valid (1 without an id), 2 invalid. Nothing was sent.\n");
  });
});

describe("an imported row with the id of a plant that is here", () => {
  test("is refused if it differs, names the plant, and the other rows are stored", async () => {
    const { run } = await openNewGarden();
    await run("plants add Rose --id 7 --tag shade");
    const path = writeFile("taken.csv", "id,name,tag\n7,Tulip,\n,Ivy,\n");

    const { exitCode, out, errors } = await run(["import", path]);

    expect(exitCode).toBe(1);
    expect(out).toBe('{"stored":1,"alreadyThere":0,"refused":1}\n');
    expect(errors).toStartWith("line 2: plant 7 is here as Rose (shade)\n");
    expect(await listNames(run)).toEqual(["Rose", "Ivy"]);
  });

  test("is already there if it's the same", async () => {
    const { run } = await openNewGarden();
    await run("plants add Rose --id 7 --tag shade");
    const path = writeFile("same.csv", "id,name,tag\n7,Rose,shade\n");

    const { exitCode, out } = await run(["import", path]);

    expect(exitCode).toBe(0);
    expect(out).toBe('{"stored":0,"alreadyThere":1,"refused":0}\n');
  });

  test("is treated the same way if an earlier row has added the plant", async () => {
    const { run } = await openNewGarden();
    const path = writeFile("twice.csv", "id,name,tag\n1,Fern,\n1,Fern,\n1,Moss,\n");

    const { exitCode, out, errors } = await run(["import", path]);

    expect(exitCode).toBe(1);
    expect(out).toBe('{"stored":1,"alreadyThere":1,"refused":1}\n');
    expect(errors).toStartWith("line 4: plant 1 is here as Fern\n");
    expect(errors).toEndWith(
      "Put the refused rows into another file, fix them there, and import that.\n",
    );
    expect(await listNames(run)).toEqual(["Fern"]);
  });

  test("counts in the summary, and the command ends with the advice to use --update", async () => {
    const { run } = await openNewGarden();
    await run("plants add Rose --id 7 --tag shade");
    await run("plants add Fern --id 1");
    const path = writeFile("report.csv", "id,name,tag\n7,Tulip,\n,Ivy,\n1,Moss,\n2,Oak,\n");

    const { exitCode, out, errors } = await run(["import", path]);

    expect(exitCode).toBe(1);
    expect(out).toBe('{"stored":2,"alreadyThere":0,"refused":2}\n');
    expect(errors.replace(/in \d+\.\d s\./, "in 0.1 s.")).toBe(
      "line 2: plant 7 is here as Rose (shade)\n" +
        "line 4: plant 1 is here as Fern\n" +
        "Added 2 plants in 0.1 s. 2 rows were refused.\n" +
        "plantstore: To make these plants as the file has them, import it with --update.\n",
    );
    expect(await listNames(run)).toEqual(["Fern", "Oak", "Rose", "Ivy"]);
  });
});
