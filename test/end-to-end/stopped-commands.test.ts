/** Commands that a signal or a failure ends midway: what they say they did is what they did. */
import { afterAll, describe, expect, test } from "bun:test";
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

/**
 * Passes requests on to the service. For those with many plants, of which the first is number 1,
 * `onBulk` decides what happens.
 */
function openProxy(onBulk: (bulkNumber: number, forward: Forward) => Promise<Response>) {
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
      if (!pathname.startsWith("/plants/bulk")) return forward();
      bulks++;
      return onBulk(bulks, forward);
    },
  });
}

/** What a proxy sends when it has lost the response of the service. */
const lostResponse = () => new Response(null, { status: 502 });

/** Every third row of the file has an id. */
const rowsWithIds = 2_000;
const rows = 6_000;

/**
 * Writes 6,000 rows, which go into five requests. The first two of these have the 2,000 rows with
 * ids.
 */
function writeRows(name: string): string {
  const path = join(folder.path, name);
  const lines = Array.from({ length: rows }, (_, index) =>
    `${index % 3 === 0 ? index + 1 : ""},Plant ${index} `.padEnd(150, "x"),
  );
  writeFileSync(path, ["id,name", ...lines].join("\n"));
  return path;
}

async function openGardenOf(user: string) {
  const garden = await openGarden(service, { user });
  return {
    ...garden,
    async countPlants(): Promise<number> {
      return (await (await garden.call("GET /me")).json()).plants;
    },
  };
}

describe("an import that a signal stops", () => {
  /** Stops it while the third of its five requests is under way. */
  const openStoppingProxy = () =>
    openProxy(async (bulkNumber, forward) => {
      if (bulkNumber === 3) process.emit("SIGINT");
      return forward();
    });

  test("waits for the request under way, and counts what that adds", async () => {
    const { run, countPlants } = await openGardenOf("waits");
    using proxy = openStoppingProxy();

    const { exitCode, out, errors } = await run(
      ["import", writeRows("waits.csv")],
      proxy.url.origin,
    );

    const added = await countPlants();
    expect(exitCode).toBe(130);
    expect(out).toBe(`{"stored":${added},"alreadyThere":0,"refused":0}\n`);
    // The third request has ended, and not all five were sent.
    expect(added).toBeGreaterThanOrEqual(3_000);
    expect(added).toBeLessThan(rows);
    expect(errors).toContain(" Run the same import again to go on: no plant is added twice.\n");
    expect(errors).toEndWith("plantstore: Stopped. Not all rows were sent.\n");
  });

  test("sends a request without a response once more, to count what it added", async () => {
    const { run, countPlants } = await openGardenOf("counts");
    using proxy = openProxy(async (bulkNumber, forward) => {
      if (bulkNumber === 3) process.emit("SIGTERM");
      const response = await forward();
      return bulkNumber === 3 ? lostResponse() : response;
    });

    const { exitCode, out } = await run(["import", writeRows("counts.csv")], proxy.url.origin);

    expect(exitCode).toBe(130);
    expect(out).toBe(`{"stored":${await countPlants()},"alreadyThere":0,"refused":0}\n`);
  });

  test("adds nothing twice when it is run again, even after a lost response", async () => {
    const { run, countPlants } = await openGardenOf("repeats");
    const path = writeRows("repeats.csv");
    using proxy = openProxy(async (bulkNumber, forward) => {
      if (bulkNumber === 3) process.emit("SIGTERM");
      const response = await forward();
      return bulkNumber === 3 ? lostResponse() : response;
    });
    await run(["import", path], proxy.url.origin);
    const added = await countPlants();

    const { exitCode, out } = await run(["import", path]);

    expect(exitCode).toBe(0);
    expect(out).toBe(`{"stored":${rows - added},"alreadyThere":${added},"refused":0}\n`);
    expect(await countPlants()).toBe(rows);
  });

  test("twice ends at once, and names the least and the most that it added", async () => {
    const { run, countPlants } = await openGardenOf("bounds");
    using proxy = openProxy(async (bulkNumber, forward) => {
      if (bulkNumber !== 3) return forward();
      // npm and `timeout` repeat a signal at once, which means nothing.
      process.emit("SIGINT");
      process.emit("SIGINT");
      await forward();
      setTimeout(() => process.emit("SIGINT"), 1_100);
      return new Promise<Response>(() => {});
    });

    const { exitCode, out, errors } = await run(
      ["import", writeRows("bounds.csv")],
      proxy.url.origin,
    );

    const { stored, storedMax } = JSON.parse(out);
    expect(exitCode).toBe(130);
    expect(await countPlants()).toBe(storedMax);
    expect(stored).toBeGreaterThanOrEqual(1);
    expect(stored).toBeLessThan(storedMax);
    const least = stored.toLocaleString("en");
    const most = storedMax.toLocaleString("en");
    expect(errors).toContain(`Added at least ${least}, at most ${most} plants in`);
  });

  test("among rows that are already there compares the ones that it has sent", async () => {
    const { run, countPlants } = await openGardenOf("known");
    const path = writeRows("known.csv");
    await run(["import", path]);
    using proxy = openStoppingProxy();

    const { exitCode, out } = await run(["import", path], proxy.url.origin);

    const { alreadyThere } = JSON.parse(out);
    expect(exitCode).toBe(130);
    expect(out).toBe(`{"stored":0,"alreadyThere":${alreadyThere},"refused":0}\n`);
    // The third request has rows without ids, and isn't the last.
    expect(alreadyThere).toBeGreaterThan(rowsWithIds);
    expect(alreadyThere).toBeLessThan(rows);
    expect(await countPlants()).toBe(rows);
  });

  test("shows at a terminal that it is stopping", async () => {
    const { env } = await openGardenOf("watched");
    const isStopping = Promise.withResolvers<void>();
    using proxy = openProxy(async (bulkNumber, forward) => {
      if (bulkNumber === 2) {
        process.emit("SIGINT");
        await isStopping.promise;
      }
      return forward();
    });
    const progressLines: string[] = [];
    const { terminal, written } = makeTerminal({
      env: { ...env, PLANTSTORE_URL: proxy.url.origin },
      draw(line) {
        progressLines.push(line);
        if (line === "Stopping…") isStopping.resolve();
      },
    });

    const exitCode = await runHere(["import", writeRows("watched.csv")], terminal);

    expect(exitCode).toBe(130);
    expect(progressLines.slice(-2)).toEqual(["Stopping…", ""]);
    expect(JSON.parse(written.out)).toMatchObject({ stored: 2_000 });
  });
});

describe("rows whose response was lost", () => {
  /** Loses the response to the first rows without ids. */
  const openLosingProxy = () =>
    openProxy(async (bulkNumber, forward) => {
      const response = await forward();
      return bulkNumber === 3 ? lostResponse() : response;
    });

  test("count as added if this import added them", async () => {
    const { run, countPlants } = await openGardenOf("adds");
    using proxy = openLosingProxy();

    const { out } = await run(["import", writeRows("adds.csv")], proxy.url.origin);

    expect(out).toBe('{"stored":6000,"alreadyThere":0,"refused":0}\n');
    expect(await countPlants()).toBe(6_000);
  });

  test("count as already there if an earlier import added them", async () => {
    const { run, countPlants } = await openGardenOf("added-earlier");
    const path = writeRows("added-earlier.csv");
    await run(["import", path]);
    using proxy = openLosingProxy();

    const { out } = await run(["import", path], proxy.url.origin);

    expect(out).toBe('{"stored":0,"alreadyThere":6000,"refused":0}\n');
    expect(await countPlants()).toBe(6_000);
  });
});

describe("a deletion of many plants", () => {
  test("that a signal stops says how many it deleted, even if their response was lost", async () => {
    const { run, countPlants } = await openGardenOf("home");
    // One plant more than a request deletes.
    await fillStore(service.database, 10_001);
    using proxy = openProxy(async (bulkNumber, forward) => {
      if (bulkNumber === 1) process.emit("SIGINT");
      const response = await forward();
      return bulkNumber === 1 ? lostResponse() : response;
    });

    const stopped = await run("plants delete --search Fern --yes", proxy.url.origin);

    expect(stopped).toEqual({
      exitCode: 130,
      out: '{"deleted":10000,"missing":0}\n',
      errors: "plantstore: Stopped. Not all of these plants were deleted.\n",
    });
    expect(await countPlants()).toBe(1);
    expect((await run("plants delete --search Fern --yes")).out).toBe(
      '{"deleted":1,"missing":0}\n',
    );
  });

  test("that gets no response names the least and the most that it deleted", async () => {
    const { run, countPlants } = await openGardenOf("unheard");
    await run("plants add Fern");
    await run(["plants", "add", "Tree fern"]);
    await run(["plants", "add", "Royal fern"]);
    using proxy = openProxy(async () => lostResponse());

    const { exitCode, out } = await run("plants delete --search fern --yes", proxy.url.origin);

    expect(exitCode).toBe(6);
    expect(JSON.parse(out)).toEqual({ deleted: 0, deletedMax: 3, missing: 0 });
    expect(await countPlants()).toBe(3);
  });

  test("can be run again after it got no response", async () => {
    const { run } = await openGardenOf("heard-later");
    await run("plants add Fern");
    await run(["plants", "add", "Tree fern"]);
    await run(["plants", "add", "Royal fern"]);
    using proxy = openProxy(async () => lostResponse());
    await run("plants delete --search fern --yes", proxy.url.origin);

    expect(await run("plants delete --search fern --yes")).toEqual({
      exitCode: 0,
      out: '{"deleted":3,"missing":0}\n',
      errors: "",
    });
  });
});
