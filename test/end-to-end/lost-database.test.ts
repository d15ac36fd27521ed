/** What each thread logs about a lost database: one line when it is lost, one when it is back. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { renameSync } from "node:fs";
import { makeDatabase, startPostgres } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import {
  callAnew,
  type RunningService,
  startService,
  waitFor,
  waitForThreads,
} from "./running-service.ts";

setDefaultTimeout(120_000);

const threads = 2;
const args = ["--threads", String(threads)];

interface Line {
  readonly level: string;
  readonly event: string;
  readonly status?: number;
  readonly database?: string;
  readonly reason?: string;
  readonly lostSeconds?: number;
}

function readLog(service: RunningService): Line[] {
  const lines = service.output().out.split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line));
}

const linesOf = (service: RunningService, event: string) =>
  readLog(service).filter((line) => line.event === event);

/** Reads, writes and probes, over connections that either thread may get. */
async function callAll(service: RunningService): Promise<void> {
  const body = '{"name":"Fern"}';
  const calls = Array.from({ length: 8 }, () => [
    callAnew(service, "GET /plants?limit=2"),
    callAnew(service, "POST /plants", { body }),
    callAnew(service, "GET /readyz"),
  ]);
  await Promise.all(calls.flat());
}

async function checkLog(service: RunningService, reason: RegExp, bringBack: () => Promise<void>) {
  for (let round = 0; round < 3; round++) {
    await callAll(service);
    await Bun.sleep(700);
  }
  await waitFor(() => linesOf(service, "database lost")[threads - 1]);
  await bringBack();
  const back = await waitFor(() => linesOf(service, "database back")[threads - 1]);
  await callAll(service);
  expect(linesOf(service, "request").some(({ status }) => status === 503)).toBe(true);
  const troubles = readLog(service).filter(
    ({ level, event }) => level !== "info" && event !== "request",
  );
  expect(troubles).toHaveLength(threads);
  const lost = troubles.at(-1);
  expect(lost).toMatchObject({ level: "error", event: "database lost" });
  expect(lost?.reason).toMatch(reason);
  expect(back).toMatchObject({ level: "info", database: lost?.database as string });
  expect(back.lostSeconds).toBeGreaterThan(0);
  expect(linesOf(service, "database back")).toHaveLength(threads);
  return lost;
}

test("a PostgreSQL server that goes away and comes back is two lines a thread, with host and reason", async () => {
  using folder = makeTemporaryFolder();
  let server = await startPostgres([], { folder: folder.path });
  const { port } = server;
  const { url, name } = await makeDatabase(server);
  await using service = await startService({ database: url, args });
  await waitForThreads(service, threads);
  await callAll(service);
  await server.stop();
  const lost = await checkLog(service, /ECONNREFUSED|57P01|terminat/, async () => {
    server = await startPostgres([], { folder: folder.path, port });
  });
  expect(lost?.database).toBe(`postgres://postgres@127.0.0.1:${port}/${name}`);
  await server.stop();
});

test("a SQLite file that is moved away and back is two lines a thread, with path and reason", async () => {
  await using service = await startService({ args });
  const { database } = service;
  await waitForThreads(service, threads);
  await callAll(service);
  renameSync(database, `${database}.away`);
  const lost = await checkLog(service, /removed, replaced or emptied/, async () =>
    renameSync(`${database}.away`, database),
  );
  expect(lost?.database).toBe(database);
});
