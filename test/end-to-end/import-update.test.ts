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
const small = await serveHere({ "garden-plants-max": "3" });
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await small[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

let files = 0;

function writeFile(text: string, format = "csv"): string {
  const path = join(folder.path, `${++files}.${format}`);
  writeFileSync(path, text);
  return path;
}

let users = 0;

/** A garden of its own with these plants, and commands that run in it. */
async function openWith(lines: readonly string[], at = service) {
  const garden = await openGarden(at, { user: `user-${++users}` });
  const { run, call } = garden;
  if (lines.length > 0) await run(["import", writeFile(`id,name,tag\n${lines.join("\n")}\n`)]);
  const { lastEvent: start } = await (await call("GET /me")).json();
  return {
    ...garden,
    update: (path: string, ...more: readonly string[]) =>
      run(["import", path, "--update", ...more]),
    /** As the lines of a file. */
    async list(): Promise<string[]> {
      const plants = await (await call("GET /plants?include=id")).json();
      return plants.map((plant: Record<string, unknown>) => Object.values(plant).join(","));
    },
    /** What has happened since it was opened. */
    async events(): Promise<string[]> {
      const events = await (await call(`GET /events?after=${start}`)).json();
      return events.map(({ type, plant }: { type: string; plant: { id: number } }) => {
        return `${type.replace("plant.", "")} ${plant.id}`;
      });
    },
  };
}

const counts = (stored: number, changed: number, unchanged: number, refused = 0) =>
  `${JSON.stringify({ stored, changed, unchanged, refused })}\n`;

test("plants become what the file has, new ones are added, and nothing is deleted", async () => {
  const { update, list, events } = await openWith(["1,Fern,shade", "2,Moss,shade", "3,Ivy,"]);
  const path = writeFile("id,name,tag\n1,Boston fern,hall\n2,Moss,shade\n,Rose,sun\n9,Oak,\n");
  const first = await update(path, "--yes");
  expect(first).toMatchObject({ exitCode: 0, out: counts(2, 1, 1) });
  expect(first.errors).toMatch(
    new RegExp(
      "^1: Fern → Boston fern, tag shade → hall\n" +
        "4 rows: 1 new, 1 changes, 1 as it is\\. 1 new with an id of its own: deleted since the export\\?\n" +
        "Changed 1 plant and added 2 plants in .+ s\\. 1 row is as it was\\.\n$",
    ),
  );
  const after = ["1,Boston fern,hall", "2,Moss,shade", "3,Ivy,", "9,Oak,", "10,Rose,sun"];
  expect(await list()).toEqual(after);
  const again = await update(path);
  expect(again).toMatchObject({ exitCode: 0, out: counts(0, 0, 4) });
  expect(await events()).toEqual(["replaced 1", "created 9", "created 10"]);
});

test("a plant that was deleted since an import comes back with its file", async () => {
  const { run, update, list } = await openWith([]);
  const path = writeFile("name,tag\nFern,shade\nMoss,\n");
  expect((await update(path, "--yes")).out).toBe(counts(2, 0, 0));
  await run("plants delete 1");
  expect((await update(path, "--yes")).out).toBe(counts(1, 0, 1));
  expect(await list()).toEqual(["2,Moss,", "3,Fern,shade"]);
});

test("a dry run shows every change, and sends nothing", async () => {
  const ids = Array.from({ length: 12 }, (_, index) => index + 1);
  const { update, list, events } = await openWith(ids.map((id) => `${id},Fern ${id},`));
  const rows = ids.map((id) => `${id},Moss ${id}\n`);
  const path = writeFile(`id,name\n${rows.join("")}1234567890123456,Oak\n,Ivy\n`);
  const { exitCode, out, errors } = await update(path, "--dry-run");
  const shown = ids.map((id) => `${id}: Fern ${id} → Moss ${id}\n`).join("");
  expect(errors).toBe(
    `${shown}line 14: there is no plant 1234567890123456. A spreadsheet may have changed its last ` +
      "digits: it keeps 15\n14 rows: 1 new, 12 change, 0 as they are, 1 refused. Nothing was sent.\n",
  );
  const found = { new: 1, newWithIds: 0, changed: 12, doubtful: 0, unchanged: 0, refused: 1 };
  expect([exitCode, JSON.parse(out)]).toEqual([1, found]);
  expect([(await list()).length, await events()]).toEqual([12, []]);
});

test("a terminal shows the first ten changes, and asks", async () => {
  const ids = Array.from({ length: 12 }, (_, index) => index + 1);
  const { env, events } = await openWith(ids.map((id) => `${id},Fern ${id},`));
  const path = writeFile(`id,tag\n${ids.map((id) => `${id},hall\n`).join("")}`);
  const asked: string[] = [];
  const runWith = async (...args: (boolean | string)[]) => {
    const [answer, ...more] = args;
    const confirm = async (question: string) => {
      asked.push(question);
      return typeof answer === "boolean" ? answer : undefined;
    };
    const { terminal, written } = makeTerminal({ env, confirm });
    const words = more.map(String);
    return {
      exitCode: await runHere(["import", path, "--update", ...words], terminal),
      said: written.said,
    };
  };
  const no = await runWith(false);
  const shown = ids.slice(0, 10).map((id) => `${id}: Fern ${id}, tag (none) → hall`);
  expect(no.said).toEqual([
    ...shown,
    "… and 2 more changes",
    "12 rows: 0 new, 12 change, 0 as they are.",
    "plantstore: Nothing was sent.",
  ]);
  const nobody = await runWith("nobody");
  expect(nobody.said.at(-1)).toBe(
    "plantstore: Nothing was sent. To change 12 plants without being asked, add --yes.",
  );
  expect([no.exitCode, nobody.exitCode, await events()]).toEqual([1, 2, []]);
  const yes = await runWith(true);
  expect([yes.exitCode, (await events()).length]).toEqual([0, 12]);
  expect(asked).toEqual(Array(3).fill("Change 12 plants?"));
  // Nothing is left to ask about.
  expect([(await runWith(true)).exitCode, asked.length]).toEqual([0, 3]);
});

describe("a file that LibreOffice has saved", () => {
  const path = (name: string) => join(import.meta.dir, "../spreadsheets", `${name}.csv`);

  test.each(["exported", "unedited", "special-numbers", "german"])(
    "with nothing edited changes nothing: %s",
    async (name) => {
      const { run, update, events } = await openWith([]);
      await run(["import", path("exported")]);
      const before = (await events()).length;
      expect(before).toBe(24);
      expect(await update(path(name))).toMatchObject({ exitCode: 0, out: counts(0, 0, 24) });
      expect(await events()).toHaveLength(before);
    },
  );

  test("with three cells edited makes three changes, the one of a number first", async () => {
    const { run, update } = await openWith([]);
    await run(["import", path("exported")]);
    const { out, errors } = await update(path("edited"), "--yes");
    expect(out).toBe(counts(0, 3, 21));
    expect(errors).toStartWith(
      "15: Ivy 1, tag 007 → 8\n2: Moss → Tree moss\n3: Rose, tag shade → hall\n" +
        "24 rows: 0 new, 3 change, 21 as they are. 1 of the changes is of a number, a date or a " +
        "formula: yours, or the spreadsheet's?\n",
    );
  });
});

type Forward = () => Promise<Response>;

/** Passes requests on, except that `onPlant` decides about those to single plants. */
function openProxy(onPlant: (request: string, forward: Forward) => Promise<Response>) {
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
      const isPlant = /^\/plants\/-?\d+$/.test(pathname);
      return isPlant ? onPlant(`${method} ${pathname}`, forward) : forward();
    },
  });
}

const lost = () => new Response(null, { status: 502 });

describe("what somebody else does meanwhile", () => {
  test("is never lost: the row is refused, with both contents", async () => {
    const { run, call, list } = await openWith(["1,Fern,shade", "2,Moss,shade", "3,Ivy,shade"]);
    const path = writeFile("id,name,tag\n1,Tree fern,hall\n2,Oak,shade\n3,Rose,shade\n");
    const change = (id: number, body: string) => call(`PATCH /plants/${id}`, { body });
    // Before the plant is read, between that and the change, and a deletion.
    using proxy = openProxy(async (request, forward) => {
      if (request === "GET /plants/1") await change(1, '{"tag":"pond"}');
      if (request === "PATCH /plants/2") await change(2, '{"name":"Oakmoss"}');
      if (request === "PATCH /plants/3") await call("DELETE /plants/3");
      return forward();
    });
    const { exitCode, out, errors } = await run(
      ["import", path, "--update", "--yes"],
      proxy.url.origin,
    );
    expect([exitCode, out]).toEqual([1, counts(0, 0, 0, 3)]);
    const refused = [
      "line 2: plant 1 was changed meanwhile to Fern (pond); the file has Tree fern (hall)",
      "line 3: plant 2 was changed meanwhile to Oakmoss (shade); the file has Oak (shade)",
      "line 4: plant 3 was deleted meanwhile",
    ];
    for (const line of refused) expect(errors).toContain(`${line}\n`);
    expect(errors).toEndWith(
      "3 rows were refused.\nplantstore: Run the same import again to compare the refused rows with " +
        "what is here now.\n",
    );
    expect(await list()).toEqual(["1,Fern,pond", "2,Oakmoss,shade"]);
  });

  test("is no conflict if it's the same change, and it isn't counted as this one's", async () => {
    const { run, call, events } = await openWith(["1,Fern,shade", "2,Moss,"]);
    const path = writeFile("id,tag\n1,hall\n2,pond\n");
    using proxy = openProxy(async (request, forward) => {
      if (request === "GET /plants/1") await call("PATCH /plants/1", { body: '{"tag":"hall"}' });
      return forward();
    });
    const { exitCode, out } = await run(["import", path, "--update", "--yes"], proxy.url.origin);
    expect([exitCode, out]).toEqual([0, counts(0, 1, 1)]);
    expect(await events()).toEqual(["replaced 1", "replaced 2"]);
  });
});

/** Twice as many as are under way at the same time. */
const many = Array.from({ length: 64 }, (_, index) => index + 1);
const manyPlants = many.map((id) => `${id},Fern ${id},shade`);
const manyChanges = () => writeFile(`id,tag\n${many.map((id) => `${id},hall\n`).join("")}`);

test("a changed row takes two requests, and up to 32 are under way at a time", async () => {
  const { run } = await openWith(manyPlants);
  let underWay = 0;
  let most = 0;
  const requests: string[] = [];
  using proxy = openProxy(async (request, forward) => {
    requests.push(request);
    most = Math.max(most, ++underWay);
    await Bun.sleep(20);
    underWay--;
    return forward();
  });
  const { out } = await run(["import", manyChanges(), "--update", "--yes"], proxy.url.origin);
  expect([out, most]).toEqual([counts(0, 64, 0), 32]);
  const expected = many.flatMap((id) => [`GET /plants/${id}`, `PATCH /plants/${id}`]);
  expect(requests.toSorted()).toEqual(expected.toSorted());
});

test("a change whose response was lost counts as changed, and is made once", async () => {
  const { run, events } = await openWith(["1,Fern,", "2,Moss,"]);
  const path = writeFile("id,tag\n1,hall\n2,hall\n");
  let patches = 0;
  using proxy = openProxy(async (request, forward) => {
    const response = await forward();
    return request === "PATCH /plants/1" && ++patches === 1 ? lost() : response;
  });
  const { exitCode, out } = await run(["import", path, "--update", "--yes"], proxy.url.origin);
  expect([exitCode, out, patches]).toEqual([0, counts(0, 2, 0), 2]);
  expect((await events()).toSorted()).toEqual(["replaced 1", "replaced 2"]);
});

describe("an update that ends midway", () => {
  test("by a signal waits for the changes under way, and counts them", async () => {
    const { run, list, update } = await openWith(manyPlants);
    const path = manyChanges();
    let patches = 0;
    using proxy = openProxy(async (request, forward) => {
      if (request.startsWith("PATCH") && ++patches === 10) process.emit("SIGINT");
      return forward();
    });
    const { exitCode, out, errors } = await run(
      ["import", path, "--update", "--yes"],
      proxy.url.origin,
    );
    const changed = (await list()).filter((line) => line.endsWith(",hall")).length;
    expect([exitCode, out]).toEqual([130, counts(0, changed, 0)]);
    expect(changed).toBeWithin(10, 42);
    expect(errors).toContain(" Run the same import again to go on: no plant is added twice.\n");
    expect(errors).toEndWith("plantstore: Stopped. Not all rows were sent.\n");
    expect((await update(path, "--yes")).out).toBe(counts(0, 64 - changed, changed));
  });

  test("and doesn't know all outcomes names both bounds", async () => {
    const { run, list } = await openWith(manyPlants);
    let patches = 0;
    using proxy = openProxy(async (request, forward) => {
      if (request.startsWith("GET")) return forward();
      const nth = ++patches;
      if (nth === 20) {
        process.emit("SIGINT");
        setTimeout(() => process.emit("SIGINT"), 1_100);
      }
      const response = await forward();
      return nth < 20 ? response : new Promise(() => {});
    });
    const { exitCode, out, errors } = await run(
      ["import", manyChanges(), "--update", "--yes"],
      proxy.url.origin,
    );
    const { changed, changedMax } = JSON.parse(out);
    const actual = (await list()).filter((line) => line.endsWith(",hall")).length;
    expect([exitCode, changed]).toEqual([130, 19]);
    expect(actual).toBeWithin(20, changedMax + 1);
    expect(errors).toContain(`Changed at least 19, at most ${changedMax} plants in`);
  });

  test("because the garden is full says what it changed and added", async () => {
    const { update, list } = await openWith(["1,Fern,", "2,Moss,"], small);
    const path = writeFile("id,name\n1,Tree fern\n,Ivy\n,Rose\n");
    const { exitCode, out, errors } = await update(path, "--yes");
    expect([exitCode, out]).toEqual([6, counts(1, 1, 0)]);
    expect(errors).toContain("Changed 1 plant and added 1 plant in");
    expect(await list()).toEqual(["1,Tree fern,", "2,Moss,", "3,Ivy,"]);
  });

  test("because the disk is full says what it changed", async () => {
    const { run, list } = await openWith(["1,Fern,", "2,Moss,", "3,Ivy,"]);
    const path = writeFile("id,tag\n1,hall\n2,hall\n3,hall\n");
    const headers = { "content-type": "application/problem+json" };
    const full = { type: "urn:plantstore:problem:storage-full", detail: "The storage is full." };
    using proxy = openProxy(async (request, forward) =>
      request === "PATCH /plants/2" ? Response.json(full, { status: 507, headers }) : forward(),
    );
    const { exitCode, out, errors } = await run(
      ["import", path, "--update", "--yes"],
      proxy.url.origin,
    );
    expect([exitCode, out]).toEqual([6, counts(0, 2, 0)]);
    expect(errors).toEndWith("plantstore: The storage is full.\n");
    expect(await list()).toEqual(["1,Fern,hall", "2,Moss,", "3,Ivy,hall"]);
  });

  test("because a proxy rewrites ETags says so, and has changed nothing", async () => {
    const { run, events } = await openWith(["1,Fern,"]);
    const path = writeFile("id,tag\n1,hall\n");
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
    expect([exitCode, out, requests.length]).toEqual([1, counts(0, 0, 0), 6]);
    expect(errors).toContain("A proxy on the way changes ETags");
    expect(await events()).toEqual([]);
  });

  test("while it reads the garden has sent nothing", async () => {
    const { run, events } = await openWith(["1,Fern,"]);
    using proxy = Bun.serve({
      port: 0,
      fetch({ url }) {
        if (!url.includes("limit=1000")) return Response.json([]);
        process.emit("SIGINT");
        return new Promise<Response>(() => {});
      },
    });
    const path = writeFile("id,name\n1,Tree fern\n");
    const { exitCode, errors } = await run(["import", path, "--update"], proxy.url.origin);
    expect([exitCode, errors]).toEqual([130, "plantstore: Stopped. Nothing was sent.\n"]);
    expect(await events()).toEqual([]);
  });
});

test("nothing is sent if a row is invalid, or two have the same id", async () => {
  const { update, events } = await openWith(["7,Fern,"]);
  const path = writeFile("id,name\n7,Moss\n8,Oak\n7,Ivy\n9,\n");
  expect(await update(path, "--yes")).toEqual({
    exitCode: 2,
    out: counts(0, 0, 0, 2),
    errors:
      "line 4: line 2 has the id 7, too; leave the id empty to add a plant\n" +
      "line 5: name must not be empty\n" +
      "plantstore: Nothing was sent: 2 of 4 rows are invalid. Fix them and import the file again.\n",
  });
  expect(await events()).toEqual([]);
});

test("flags that mean nothing together are refused", async () => {
  const { run } = await openWith([]);
  const path = writeFile("name\nFern\n");
  const refused = [
    [["--update", "--again"], "--again adds plants once more. With --update, no plant is added"],
    [["--yes"], "Only an import with --update asks before it sends."],
  ] as const;
  for (const [flags, reason] of refused) {
    const { exitCode, errors } = await run(["import", path, ...flags]);
    expect([exitCode, errors]).toEqual([2, expect.stringContaining(reason)]);
  }
});
