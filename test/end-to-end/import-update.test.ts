/**
 * `plantstore import FILE --update`: the garden's plants become what the file has, nothing that
 * somebody else does is lost, and what it says it did is what it did. What counts as a change is in
 * client/files/comparison.test.ts.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTerminal, runHere } from "../../testing/command.ts";
import { openGarden, serveHere } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const folder = makeTemporaryFolder();
const service = await serveHere();
const serviceForThreePlants = await serveHere({ "garden-plants-max": "3" });
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await serviceForThreePlants[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

let filesWritten = 0;

/** Writes a CSV file with these lines, and returns its path. */
function writeCsv(...lines: readonly string[]): string {
  const path = join(folder.path, `${++filesWritten}.csv`);
  writeFileSync(path, lines.map((line) => `${line}\n`).join(""));
  return path;
}

/** One line for each of the ids 1, 2, … up to `count`. */
function linesForIds(count: number, writeLine: (id: number) => string): string[] {
  return Array.from({ length: count }, (_, index) => writeLine(index + 1));
}

let gardensOpened = 0;

/** A new garden that holds these plants, given as lines of a file: id,name,tag. */
async function openGardenWith(plants: readonly string[], at = service) {
  const garden = await openGarden(at, { user: `user-${++gardensOpened}` });
  const { run, call } = garden;
  if (plants.length > 0) await run(["import", writeCsv("id,name,tag", ...plants)]);
  const { lastEvent: lastEventBefore } = await (await call("GET /me")).json();
  return {
    ...garden,
    /** The plants, as lines of a file: id,name,tag. */
    async readPlants(): Promise<string[]> {
      const found = await (await call("GET /plants?include=id")).json();
      return found.map((plant: Record<string, unknown>) => Object.values(plant).join(","));
    },
    /** What happened since the garden was opened, such as "created 7" for plant 7. */
    async readEvents(): Promise<string[]> {
      const events = await (await call(`GET /events?after=${lastEventBefore}`)).json();
      return events.map(({ type, plant }: { type: string; plant: { id: number } }) => {
        return `${type.replace("plant.", "")} ${plant.id}`;
      });
    },
  };
}

type Garden = Awaited<ReturnType<typeof openGardenWith>>;

describe("an update", () => {
  test("changes plants to what the file has, and adds new ones", async () => {
    const { run, readPlants } = await openGardenWith(["1,Fern,shade", "2,Moss,shade"]);
    const path = writeCsv(
      "id,name,tag",
      "1,Boston fern,hall",
      "2,Moss,shade",
      ",Rose,sun",
      "9,Oak,",
    );

    const { exitCode, out } = await run(["import", path, "--update", "--yes"]);

    expect(exitCode).toBe(0);
    expect(out).toBe('{"stored":2,"changed":1,"unchanged":1,"refused":0}\n');
    expect(await readPlants()).toEqual([
      "1,Boston fern,hall",
      "2,Moss,shade",
      "9,Oak,",
      "10,Rose,sun",
    ]);
  });

  test("shows each change, says what it is about to do, and then what it did", async () => {
    const { run } = await openGardenWith(["1,Fern,shade", "2,Moss,shade"]);
    const path = writeCsv(
      "id,name,tag",
      "1,Boston fern,hall",
      "2,Moss,shade",
      ",Rose,sun",
      "9,Oak,",
    );

    const { errors } = await run(["import", path, "--update", "--yes"]);

    expect(errors.replace(/in \d+\.\d s\./, "in 0.1 s.")).toBe(
      "1: Fern → Boston fern, tag shade → hall\n" +
        "4 rows: 1 new, 1 changes, 1 as it is. 1 new with an id of its own: deleted since the export?\n" +
        "Changed 1 plant and added 2 plants in 0.1 s. 1 row is as it was.\n",
    );
  });

  test("leaves a plant alone that isn't in the file", async () => {
    const { run, readPlants, readEvents } = await openGardenWith(["1,Fern,shade", "3,Ivy,"]);
    const path = writeCsv("id,name,tag", "1,Boston fern,hall");

    expect(await run(["import", path, "--update", "--yes"])).toMatchObject({ exitCode: 0 });

    expect(await readPlants()).toEqual(["1,Boston fern,hall", "3,Ivy,"]);
    expect(await readEvents()).toEqual(["replaced 1"]);
  });

  test("that is repeated changes nothing, and needs no --yes", async () => {
    const { run, readEvents } = await openGardenWith(["1,Fern,shade", "2,Moss,shade", "3,Ivy,"]);
    const path = writeCsv(
      "id,name,tag",
      "1,Boston fern,hall",
      "2,Moss,shade",
      ",Rose,sun",
      "9,Oak,",
    );
    await run(["import", path, "--update", "--yes"]);

    const { exitCode, out } = await run(["import", path, "--update"]);

    expect(exitCode).toBe(0);
    expect(out).toBe('{"stored":0,"changed":0,"unchanged":4,"refused":0}\n');
    expect(await readEvents()).toEqual(["replaced 1", "created 9", "created 10"]);
  });

  test("brings back a plant that was deleted since the last import of the file", async () => {
    const { run, readPlants } = await openGardenWith([]);
    const path = writeCsv("name,tag", "Fern,shade", "Moss,");
    const first = await run(["import", path, "--update", "--yes"]);
    expect(first.out).toBe('{"stored":2,"changed":0,"unchanged":0,"refused":0}\n');
    await run("plants delete 1");

    const second = await run(["import", path, "--update", "--yes"]);

    expect(second.out).toBe('{"stored":1,"changed":0,"unchanged":1,"refused":0}\n');
    expect(await readPlants()).toEqual(["2,Moss,", "3,Fern,shade"]);
  });

  test("sends nothing if rows are invalid or have the same id, and lists them", async () => {
    const { run, readEvents } = await openGardenWith(["7,Fern,"]);
    const path = writeCsv("id,name", "7,Moss", "8,Oak", "7,Ivy", "9,");

    expect(await run(["import", path, "--update", "--yes"])).toEqual({
      exitCode: 2,
      out: '{"stored":0,"changed":0,"unchanged":0,"refused":2}\n',
      errors:
        "line 4: line 2 has the id 7, too; leave the id empty to add a plant\n" +
        "line 5: name must not be empty\n" +
        "plantstore: Nothing was sent: 2 of 4 rows are invalid. Fix them and import the file again.\n",
    });
    expect(await readEvents()).toEqual([]);
  });

  test("takes no --again", async () => {
    const { run } = await openGardenWith([]);

    const { exitCode, errors } = await run([
      "import",
      writeCsv("name", "Fern"),
      "--update",
      "--again",
    ]);

    expect(exitCode).toBe(2);
    expect(errors).toContain("--again adds plants once more. With --update, no plant is added");
  });
});

test("an import without --update takes no --yes", async () => {
  const { run } = await openGardenWith([]);

  const { exitCode, errors } = await run(["import", writeCsv("name", "Fern"), "--yes"]);

  expect(exitCode).toBe(2);
  expect(errors).toContain("Only an import with --update asks before it sends.");
});

describe("a dry run", () => {
  test("shows every change, however many there are", async () => {
    const { run } = await openGardenWith(linesForIds(12, (id) => `${id},Fern ${id},`));
    const path = writeCsv("id,name", ...linesForIds(12, (id) => `${id},Moss ${id}`));

    const { exitCode, errors } = await run(["import", path, "--update", "--dry-run"]);

    expect(exitCode).toBe(0);
    expect(errors.trimEnd().split("\n")).toEqual([
      ...linesForIds(12, (id) => `${id}: Fern ${id} → Moss ${id}`),
      "12 rows: 0 new, 12 change, 0 as they are. Nothing was sent.",
    ]);
  });

  test("counts what it would do, and exits with 1 if it would refuse a row", async () => {
    const { run } = await openGardenWith(linesForIds(12, (id) => `${id},Fern ${id},`));
    const changedRows = linesForIds(12, (id) => `${id},Moss ${id}`);
    const path = writeCsv("id,name", ...changedRows, "1234567890123456,Oak", ",Ivy");

    const { exitCode, out, errors } = await run(["import", path, "--update", "--dry-run"]);

    expect(exitCode).toBe(1);
    expect(JSON.parse(out)).toEqual({
      new: 1,
      newWithIds: 0,
      changed: 12,
      doubtful: 0,
      unchanged: 0,
      refused: 1,
    });
    expect(errors).toEndWith(
      "12: Fern 12 → Moss 12\n" +
        "line 14: there is no plant 1234567890123456. A spreadsheet may have changed its last " +
        "digits: it keeps 15\n" +
        "14 rows: 1 new, 12 change, 0 as they are, 1 refused. Nothing was sent.\n",
    );
  });

  test("changes and adds nothing", async () => {
    const { run, readPlants, readEvents } = await openGardenWith(["1,Fern,", "2,Moss,"]);
    const path = writeCsv("id,name", "1,Tree fern", "2,Oak", ",Ivy");

    await run(["import", path, "--update", "--dry-run"]);

    expect(await readPlants()).toEqual(["1,Fern,", "2,Moss,"]);
    expect(await readEvents()).toEqual([]);
  });
});

describe("at a terminal, an update", () => {
  const openGardenWithTwelveFerns = () =>
    openGardenWith(linesForIds(12, (id) => `${id},Fern ${id},`));
  const writeTwelveChanges = () => writeCsv("id,tag", ...linesForIds(12, (id) => `${id},hall`));

  /** Runs the update where questions get this answer; `undefined` is nobody to answer. */
  async function updateAtTerminal({ env }: Garden, path: string, answer: boolean | undefined) {
    const questions: string[] = [];
    const { terminal, written } = makeTerminal({
      env,
      async confirm(question) {
        questions.push(question);
        return answer;
      },
    });
    const exitCode = await runHere(["import", path, "--update"], terminal);
    return { exitCode, questions, lines: written.said };
  }

  test("shows the first ten changes and asks, and a no sends nothing", async () => {
    const garden = await openGardenWithTwelveFerns();

    const { exitCode, questions, lines } = await updateAtTerminal(
      garden,
      writeTwelveChanges(),
      false,
    );

    expect(exitCode).toBe(1);
    expect(questions).toEqual(["Change 12 plants?"]);
    expect(lines).toEqual([
      ...linesForIds(10, (id) => `${id}: Fern ${id}, tag (none) → hall`),
      "… and 2 more changes",
      "12 rows: 0 new, 12 change, 0 as they are.",
      "plantstore: Nothing was sent.",
    ]);
    expect(await garden.readEvents()).toEqual([]);
  });

  test("sends nothing if nobody can answer, and points at --yes", async () => {
    const garden = await openGardenWithTwelveFerns();

    const { exitCode, questions, lines } = await updateAtTerminal(
      garden,
      writeTwelveChanges(),
      undefined,
    );

    expect(exitCode).toBe(2);
    expect(questions).toEqual(["Change 12 plants?"]);
    expect(lines.at(-1)).toBe(
      "plantstore: Nothing was sent. To change 12 plants without being asked, add --yes.",
    );
    expect(await garden.readEvents()).toEqual([]);
  });

  test("makes the changes after a yes", async () => {
    const garden = await openGardenWithTwelveFerns();

    const { exitCode, questions } = await updateAtTerminal(garden, writeTwelveChanges(), true);

    expect(exitCode).toBe(0);
    expect(questions).toEqual(["Change 12 plants?"]);
    expect(await garden.readPlants()).toEqual(linesForIds(12, (id) => `${id},Fern ${id},hall`));
    expect(await garden.readEvents()).toHaveLength(12);
  });

  test("asks nothing if there is nothing to change", async () => {
    const garden = await openGardenWith(["1,Fern,hall"]);

    const { exitCode, questions } = await updateAtTerminal(
      garden,
      writeCsv("id,tag", "1,hall"),
      true,
    );

    expect(exitCode).toBe(0);
    expect(questions).toEqual([]);
  });
});

describe("a file that LibreOffice has saved", () => {
  const savedFile = (name: string) => join(import.meta.dir, "../spreadsheets", name);

  /** A garden with the 24 plants that the spreadsheets began with. */
  async function openExportedGarden() {
    const garden = await openGardenWith([]);
    await garden.run(["import", savedFile("exported.csv")]);
    expect(await garden.readEvents()).toHaveLength(24);
    return garden;
  }

  test.each(["exported.csv", "unedited.csv", "special-numbers.csv", "german.csv"])(
    "with nothing edited changes nothing: %s",
    async (name) => {
      const { run, readEvents } = await openExportedGarden();

      const { exitCode, out } = await run(["import", savedFile(name), "--update"]);

      expect(exitCode).toBe(0);
      expect(out).toBe('{"stored":0,"changed":0,"unchanged":24,"refused":0}\n');
      expect(await readEvents()).toHaveLength(24);
    },
  );

  test("with three edited cells makes three changes, the one of a number first", async () => {
    const { run } = await openExportedGarden();

    const { out, errors } = await run(["import", savedFile("edited.csv"), "--update", "--yes"]);

    expect(out).toBe('{"stored":0,"changed":3,"unchanged":21,"refused":0}\n');
    expect(errors).toStartWith(
      "15: Ivy 1, tag 007 → 8\n" +
        "2: Moss → Tree moss\n" +
        "3: Rose, tag shade → hall\n" +
        "24 rows: 0 new, 3 change, 21 as they are. 1 of the changes is of a number, a date or a " +
        "formula: yours, or the spreadsheet's?\n",
    );
  });
});

type Forward = () => Promise<Response>;

/**
 * Passes requests on to the service. For requests to single plants, such as "GET /plants/1",
 * `onPlantRequest` decides what happens.
 */
function openProxy(onPlantRequest: (request: string, forward: Forward) => Promise<Response>) {
  return Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = await request.text();
      const forward = async () => {
        const init = { method, headers, ...(body && { body }) };
        const response = await fetch(service.url + pathname + search, init);
        return new Response(await response.text(), response);
      };
      const isPlantRequest = /^\/plants\/-?\d+$/.test(pathname);
      return isPlantRequest ? onPlantRequest(`${method} ${pathname}`, forward) : forward();
    },
  });
}

/** What a proxy sends when it has lost the response of the service. */
const lostResponse = () => new Response(null, { status: 502 });

describe("a row is refused", () => {
  test("if somebody changes its plant before the update reads it", async () => {
    const { run, call, readPlants } = await openGardenWith(["1,Fern,shade"]);
    const path = writeCsv("id,name,tag", "1,Tree fern,hall");
    using proxy = openProxy(async (request, forward) => {
      if (request === "GET /plants/1") await call("PATCH /plants/1", { body: '{"tag":"pond"}' });
      return forward();
    });

    const { exitCode, out, errors } = await run(
      ["import", path, "--update", "--yes"],
      proxy.url.origin,
    );

    expect(exitCode).toBe(1);
    expect(out).toBe('{"stored":0,"changed":0,"unchanged":0,"refused":1}\n');
    expect(errors).toContain(
      "line 2: plant 1 was changed meanwhile to Fern (pond); the file has Tree fern (hall)\n",
    );
    expect(await readPlants()).toEqual(["1,Fern,pond"]);
  });

  test("if somebody changes its plant after the update has read it", async () => {
    const { run, call, readPlants } = await openGardenWith(["2,Moss,shade"]);
    const path = writeCsv("id,name,tag", "2,Oak,shade");
    using proxy = openProxy(async (request, forward) => {
      if (request === "PATCH /plants/2") {
        await call("PATCH /plants/2", { body: '{"name":"Oakmoss"}' });
      }
      return forward();
    });

    const { exitCode, out, errors } = await run(
      ["import", path, "--update", "--yes"],
      proxy.url.origin,
    );

    expect(exitCode).toBe(1);
    expect(out).toBe('{"stored":0,"changed":0,"unchanged":0,"refused":1}\n');
    expect(errors).toContain(
      "line 2: plant 2 was changed meanwhile to Oakmoss (shade); the file has Oak (shade)\n",
    );
    expect(await readPlants()).toEqual(["2,Oakmoss,shade"]);
  });

  test("if somebody deletes its plant after the update has read it", async () => {
    const { run, call, readPlants } = await openGardenWith(["3,Ivy,shade"]);
    const path = writeCsv("id,name,tag", "3,Rose,shade");
    using proxy = openProxy(async (request, forward) => {
      if (request === "PATCH /plants/3") await call("DELETE /plants/3");
      return forward();
    });

    const { exitCode, out, errors } = await run(
      ["import", path, "--update", "--yes"],
      proxy.url.origin,
    );

    expect(exitCode).toBe(1);
    expect(out).toBe('{"stored":0,"changed":0,"unchanged":0,"refused":1}\n');
    expect(errors).toContain("line 2: plant 3 was deleted meanwhile\n");
    expect(await readPlants()).toEqual([]);
  });
});

test("an update that had to refuse rows counts them, exits with 1 and says how to go on", async () => {
  const { run, call } = await openGardenWith(["1,Fern,shade", "2,Moss,shade", "3,Ivy,shade"]);
  const path = writeCsv("id,name", "1,Tree fern", "2,Oak", "3,Rose");
  using proxy = openProxy(async (request, forward) => {
    if (request.startsWith("PATCH")) await call(request.replace("PATCH", "DELETE"));
    return forward();
  });

  const { exitCode, out, errors } = await run(
    ["import", path, "--update", "--yes"],
    proxy.url.origin,
  );

  expect(exitCode).toBe(1);
  expect(out).toBe('{"stored":0,"changed":0,"unchanged":0,"refused":3}\n');
  expect(errors).toEndWith(
    "3 rows were refused.\n" +
      "plantstore: Run the same import again to compare the refused rows with what is here now.\n",
  );
});

test("a change that somebody else makes first is no conflict, and isn't counted", async () => {
  const { run, call, readEvents } = await openGardenWith(["1,Fern,shade", "2,Moss,"]);
  const path = writeCsv("id,tag", "1,hall", "2,pond");
  using proxy = openProxy(async (request, forward) => {
    if (request === "GET /plants/1") await call("PATCH /plants/1", { body: '{"tag":"hall"}' });
    return forward();
  });

  const { exitCode, out } = await run(["import", path, "--update", "--yes"], proxy.url.origin);

  expect(exitCode).toBe(0);
  expect(out).toBe('{"stored":0,"changed":1,"unchanged":1,"refused":0}\n');
  expect(await readEvents()).toEqual(["replaced 1", "replaced 2"]);
});

/** 64 plants: twice as many as an update changes at the same time. */
const openGardenWith64Ferns = () =>
  openGardenWith(linesForIds(64, (id) => `${id},Fern ${id},shade`));

/** A file that changes each of the 64 ferns. */
const write64Changes = () => writeCsv("id,tag", ...linesForIds(64, (id) => `${id},hall`));

async function countChangedFerns({ readPlants }: Garden): Promise<number> {
  return (await readPlants()).filter((plant) => plant.endsWith(",hall")).length;
}

test("each changed plant is read once and then changed once", async () => {
  const { run } = await openGardenWith64Ferns();
  const requests: string[] = [];
  using proxy = openProxy(async (request, forward) => {
    requests.push(request);
    return forward();
  });

  const { out } = await run(["import", write64Changes(), "--update", "--yes"], proxy.url.origin);

  expect(out).toBe('{"stored":0,"changed":64,"unchanged":0,"refused":0}\n');
  expect(requests).toHaveLength(128);
  for (let id = 1; id <= 64; id++) {
    expect(requests.filter((request) => request.endsWith(`/plants/${id}`))).toEqual([
      `GET /plants/${id}`,
      `PATCH /plants/${id}`,
    ]);
  }
});

test("up to 32 plants are changed at the same time", async () => {
  const { run } = await openGardenWith64Ferns();
  let underWay = 0;
  let mostUnderWay = 0;
  const areManyUnderWay = Promise.withResolvers<void>();
  using proxy = openProxy(async (request, forward) => {
    if (!/\/plants\/\d+$/.test(request)) return forward();
    underWay++;
    mostUnderWay = Math.max(mostUnderWay, underWay);
    if (underWay >= 32) areManyUnderWay.resolve();
    // Nothing goes on before that, unless it never happens.
    await Promise.race([areManyUnderWay.promise, Bun.sleep(30_000)]);
    // One more would come by now.
    await Bun.sleep(20);
    underWay--;
    return forward();
  });

  await run(["import", write64Changes(), "--update", "--yes"], proxy.url.origin);

  expect(mostUnderWay).toBe(32);
});

test("a change whose response was lost is sent again, made once and counted once", async () => {
  const { run, readEvents } = await openGardenWith(["1,Fern,", "2,Moss,"]);
  const path = writeCsv("id,tag", "1,hall", "2,hall");
  let changesOfFern = 0;
  using proxy = openProxy(async (request, forward) => {
    const response = await forward();
    if (request !== "PATCH /plants/1") return response;
    changesOfFern++;
    return changesOfFern === 1 ? lostResponse() : response;
  });

  const { exitCode, out } = await run(["import", path, "--update", "--yes"], proxy.url.origin);

  expect(exitCode).toBe(0);
  expect(out).toBe('{"stored":0,"changed":2,"unchanged":0,"refused":0}\n');
  expect(changesOfFern).toBe(2);
  expect((await readEvents()).toSorted()).toEqual(["replaced 1", "replaced 2"]);
});

describe("an update that a signal stops", () => {
  /** Runs a file's 64 changes by way of a proxy, which sends SIGINT at the tenth. */
  async function stopAtTenthChange({ run }: Garden, path: string) {
    let changesSent = 0;
    using proxy = openProxy(async (request, forward) => {
      if (request.startsWith("PATCH")) changesSent++;
      if (request.startsWith("PATCH") && changesSent === 10) process.emit("SIGINT");
      return forward();
    });
    return await run(["import", path, "--update", "--yes"], proxy.url.origin);
  }

  test("waits for the changes under way, and counts them", async () => {
    const garden = await openGardenWith64Ferns();

    const { exitCode, out, errors } = await stopAtTenthChange(garden, write64Changes());

    const changed = await countChangedFerns(garden);
    expect(exitCode).toBe(130);
    expect(out).toBe(`{"stored":0,"changed":${changed},"unchanged":0,"refused":0}\n`);
    expect(errors).toEndWith("plantstore: Stopped. Not all rows were sent.\n");
    // At the tenth change, nine have ended at most, and 32 are under way at most.
    expect(changed).toBeGreaterThanOrEqual(10);
    expect(changed).toBeLessThanOrEqual(41);
  });

  test("can be run again to change the rest, and says so", async () => {
    const garden = await openGardenWith64Ferns();
    const path = write64Changes();

    const stopped = await stopAtTenthChange(garden, path);
    const changed = await countChangedFerns(garden);
    const again = await garden.run(["import", path, "--update", "--yes"]);

    expect(stopped.errors).toContain(
      " Run the same import again to go on: no plant is added twice.\n",
    );
    expect(again.out).toBe(
      `{"stored":0,"changed":${64 - changed},"unchanged":${changed},"refused":0}\n`,
    );
  });

  test("names the least and the most that it changed if responses are missing", async () => {
    const garden = await openGardenWith64Ferns();
    let changesSent = 0;
    using proxy = openProxy(async (request, forward) => {
      if (request.startsWith("GET")) return forward();
      changesSent++;
      if (changesSent < 20) return forward();
      if (changesSent === 20) {
        process.emit("SIGINT");
        // A second signal counts only if it comes more than a second later.
        setTimeout(() => process.emit("SIGINT"), 1_100);
      }
      await forward();
      return new Promise(() => {});
    });

    const { exitCode, out, errors } = await garden.run(
      ["import", write64Changes(), "--update", "--yes"],
      proxy.url.origin,
    );

    const { changed, changedMax } = JSON.parse(out);
    expect(exitCode).toBe(130);
    expect(changed).toBe(19);
    expect(errors).toContain(`Changed at least 19, at most ${changedMax} plants in`);
    const actuallyChanged = await countChangedFerns(garden);
    expect(actuallyChanged).toBeGreaterThanOrEqual(20);
    expect(actuallyChanged).toBeLessThanOrEqual(changedMax);
  });

  test("while it reads the garden has sent nothing", async () => {
    const { run, readEvents } = await openGardenWith(["1,Fern,"]);
    const path = writeCsv("id,name", "1,Tree fern");
    using proxy = Bun.serve({
      port: 0,
      fetch({ url }) {
        const isListOfPlants = url.includes("limit=1000");
        if (!isListOfPlants) return Response.json([]);
        process.emit("SIGINT");
        return new Promise<Response>(() => {});
      },
    });

    const { exitCode, errors } = await run(["import", path, "--update"], proxy.url.origin);

    expect(exitCode).toBe(130);
    expect(errors).toBe("plantstore: Stopped. Nothing was sent.\n");
    expect(await readEvents()).toEqual([]);
  });
});

describe("an update that fails midway", () => {
  test("because the garden is full says what it changed and added", async () => {
    const { run, readPlants } = await openGardenWith(["1,Fern,", "2,Moss,"], serviceForThreePlants);
    const path = writeCsv("id,name", "1,Tree fern", ",Ivy", ",Rose");

    const { exitCode, out, errors } = await run(["import", path, "--update", "--yes"]);

    expect(exitCode).toBe(6);
    expect(out).toBe('{"stored":1,"changed":1,"unchanged":0,"refused":0}\n');
    expect(errors).toContain("Changed 1 plant and added 1 plant in");
    expect(await readPlants()).toEqual(["1,Tree fern,", "2,Moss,", "3,Ivy,"]);
  });

  test("because the disk is full says what it changed", async () => {
    const { run, readPlants } = await openGardenWith(["1,Fern,", "2,Moss,", "3,Ivy,"]);
    const path = writeCsv("id,tag", "1,hall", "2,hall", "3,hall");
    using proxy = openProxy(async (request, forward) => {
      if (request !== "PATCH /plants/2") return forward();
      return Response.json(
        { type: "urn:plantstore:problem:storage-full", detail: "The storage is full." },
        { status: 507, headers: { "content-type": "application/problem+json" } },
      );
    });

    const { exitCode, out, errors } = await run(
      ["import", path, "--update", "--yes"],
      proxy.url.origin,
    );

    expect(exitCode).toBe(6);
    expect(out).toBe('{"stored":0,"changed":2,"unchanged":0,"refused":0}\n');
    expect(errors).toEndWith("plantstore: The storage is full.\n");
    expect(await readPlants()).toEqual(["1,Fern,hall", "2,Moss,", "3,Ivy,hall"]);
  });

  test("because a proxy rewrites ETags gives up after three tries, and says so", async () => {
    const { run, readEvents } = await openGardenWith(["1,Fern,"]);
    const path = writeCsv("id,tag", "1,hall");
    const requests: string[] = [];
    using proxy = openProxy(async (request, forward) => {
      requests.push(request);
      const { status, headers, body } = await forward();
      const etag = headers.get("etag")?.replace(/"$/, '-gzip"') ?? "";
      return new Response(body, { status, headers: { ...Object.fromEntries(headers), etag } });
    });

    const { exitCode, out, errors } = await run(
      ["import", path, "--update", "--yes"],
      proxy.url.origin,
    );

    expect(exitCode).toBe(1);
    expect(out).toBe('{"stored":0,"changed":0,"unchanged":0,"refused":0}\n');
    expect(errors).toContain("A proxy on the way changes ETags");
    expect(requests).toEqual([
      "GET /plants/1",
      "PATCH /plants/1",
      "GET /plants/1",
      "PATCH /plants/1",
      "GET /plants/1",
      "PATCH /plants/1",
    ]);
    expect(await readEvents()).toEqual([]);
  });
});
