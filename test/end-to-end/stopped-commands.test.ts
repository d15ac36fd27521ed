/** Commands that a signal or a failure ends midway: what they say they did is what they did. */
import { afterAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTerminal, runHere } from "../../testing/command.ts";
import { fillStore } from "../../testing/filled-store.ts";
import { openGarden, serveHere } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

const folder = makeTemporaryFolder();
const service = await serveHere();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

type Forward = () => Promise<Response>;

/** Passes requests on to the service, except that `onBulk` decides about the nth bulk. */
function openProxy(onBulk: (nth: number, forward: Forward) => Promise<Response>) {
  let bulks = 0;
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
      return pathname.startsWith("/plants/bulk") ? onBulk(++bulks, forward) : forward();
    },
  });
}

const lost = () => new Response(null, { status: 502 });
const silence = () => new Promise<Response>(() => {});

/** Rows that go into five requests. The first two have the rows with ids. */
function writeRows(name: string): string {
  const path = join(folder.path, name);
  const rows = Array.from({ length: 6_000 }, (_, index) =>
    `${index % 3 === 0 ? index + 1 : ""},Plant ${index} `.padEnd(150, "x"),
  );
  writeFileSync(path, ["id,name", ...rows].join("\n"));
  return path;
}

/** Runs a command by way of a proxy. Returns what it printed, and how many plants there are then. */
async function runThrough(
  user: string,
  args: readonly string[],
  onBulk: Parameters<typeof openProxy>[0],
) {
  const { run, call } = await openGarden(service, { user });
  using proxy = openProxy(onBulk);
  const { exitCode, out, errors } = await run(args, proxy.url.origin);
  const { plants }: { plants: number } = await (await call("GET /me")).json();
  return { run, exitCode, errors, counts: JSON.parse(out), plants };
}

test("an import that is stopped waits for the request under way, and counts what it adds", async () => {
  const path = writeRows("waits.csv");
  const { exitCode, errors, counts, plants } = await runThrough(
    "waits",
    ["import", path],
    async (nth, forward) => {
      if (nth === 3) process.emit("SIGINT");
      return forward();
    },
  );
  expect([exitCode, counts]).toEqual([130, { stored: plants, alreadyThere: 0, refused: 0 }]);
  expect(plants).toBeWithin(3_000, 6_000);
  expect(errors).toContain(" Run the same import again to go on: no plant is added twice.\n");
  expect(errors).toEndWith("plantstore: Stopped. Not all rows were sent.\n");
});

test("an import that is stopped sends a request without a response once more, and adds nothing twice later", async () => {
  const path = writeRows("repeats.csv");
  const { run, exitCode, counts, plants } = await runThrough(
    "repeats",
    ["import", path],
    async (nth, forward) => {
      if (nth === 3) process.emit("SIGTERM");
      const response = await forward();
      return nth === 3 ? lost() : response;
    },
  );
  expect([exitCode, counts]).toEqual([130, { stored: plants, alreadyThere: 0, refused: 0 }]);
  const rest = { stored: 6_000 - plants, alreadyThere: plants, refused: 0 };
  expect(await run(["import", path])).toMatchObject({
    exitCode: 0,
    out: `${JSON.stringify(rest)}\n`,
  });
});

test("an import whose outcome is unknown names both bounds, at once if it is stopped twice", async () => {
  const { exitCode, errors, counts, plants } = await runThrough(
    "bounds",
    ["import", writeRows("bounds.csv")],
    async (nth, forward) => {
      if (nth !== 3) return forward();
      // npm and `timeout` repeat a signal at once, which means nothing.
      process.emit("SIGINT");
      process.emit("SIGINT");
      await forward();
      setTimeout(() => process.emit("SIGINT"), 1_100);
      return silence();
    },
  );
  const { stored, storedMax } = counts;
  expect([exitCode, plants]).toEqual([130, storedMax]);
  expect(stored).toBeWithin(1, storedMax);
  const [least, most] = [stored, storedMax].map((count) => count.toLocaleString("en"));
  expect(errors).toContain(`Added at least ${least}, at most ${most} plants in`);
});

test("rows whose response was lost were added by this import, or by an earlier one, whichever it was", async () => {
  const path = writeRows("first.csv");
  const importOnce = () =>
    runThrough("first", ["import", path], async (nth, forward) => {
      const response = await forward();
      // The third has the first rows without ids.
      return nth === 3 ? lost() : response;
    });
  expect(await importOnce()).toMatchObject({
    counts: { stored: 6_000, alreadyThere: 0, refused: 0 },
    plants: 6_000,
  });
  expect(await importOnce()).toMatchObject({
    counts: { stored: 0, alreadyThere: 6_000, refused: 0 },
    plants: 6_000,
  });
});

test("an import that is stopped among rows that are already there compares what it has sent", async () => {
  const path = writeRows("known.csv");
  await runThrough("known", ["import", path], (_, forward) => forward());
  const { exitCode, counts, plants } = await runThrough(
    "known",
    ["import", path],
    async (nth, forward) => {
      if (nth === 3) process.emit("SIGINT");
      return forward();
    },
  );
  const { alreadyThere } = counts;
  expect([exitCode, counts]).toEqual([130, { stored: 0, alreadyThere, refused: 0 }]);
  expect(alreadyThere).toBeWithin(2_001, 6_000);
  expect(plants).toBe(6_000);
});

test("a terminal shows that an import is stopping", async () => {
  const { env } = await openGarden(service, { user: "watched" });
  const isStopping = Promise.withResolvers<void>();
  const drawn: string[] = [];
  const draw = (line: string) => {
    drawn.push(line);
    if (line === "Stopping…") isStopping.resolve();
  };
  using proxy = openProxy(async (nth, forward) => {
    if (nth !== 2) return forward();
    process.emit("SIGINT");
    await isStopping.promise;
    return forward();
  });
  const { terminal, written } = makeTerminal({
    env: { ...env, PLANTSTORE_URL: proxy.url.origin },
    draw,
  });
  expect(await runHere(["import", writeRows("watched.csv")], terminal)).toBe(130);
  expect(drawn.slice(-2)).toEqual(["Stopping…", ""]);
  expect(JSON.parse(written.out)).toMatchObject({ stored: 2_000 });
});

test("a deletion of many that is stopped says how many it deleted", async () => {
  const { run } = await openGarden(service, { user: "home" });
  await fillStore(service.database, 10_001);
  const { exitCode, errors, counts, plants } = await runThrough(
    "home",
    ["plants", "delete", "--search", "Fern", "--yes"],
    async (nth, forward) => {
      if (nth === 1) process.emit("SIGINT");
      const response = await forward();
      return nth === 1 ? lost() : response;
    },
  );
  expect([exitCode, counts, plants]).toEqual([130, { deleted: 10_000, missing: 0 }, 1]);
  expect(errors).toBe("plantstore: Stopped. Not all of these plants were deleted.\n");
  expect((await run("plants delete --search Fern --yes")).out).toBe('{"deleted":1,"missing":0}\n');
});

test("a deletion of many that has no response names both bounds", async () => {
  const names = ["Fern", "Tree fern", "Royal fern"];
  const { run, call } = await openGarden(service, { user: "unheard" });
  await call("POST /plants/bulk", { body: JSON.stringify(names.map((name) => ({ name }))) });
  const { exitCode, counts, plants } = await runThrough(
    "unheard",
    ["plants", "delete", "--search", "fern", "--yes"],
    async () => lost(),
  );
  expect([exitCode, counts, plants]).toEqual([6, { deleted: 0, deletedMax: 3, missing: 0 }, 3]);
  const out = '{"deleted":3,"missing":0}\n';
  expect(await run("plants delete --search fern --yes")).toEqual({ exitCode: 0, out, errors: "" });
});
