/**
 * The main thread's end of a thread that listens: what it learns of one that stops or cannot start.
 */
import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { readConfig } from "../config.ts";
import type { StorageShare } from "../domain/storage.ts";
import { createLog } from "../log.ts";
import { openStorage } from "../storage/open.ts";
import { ListenerThread } from "./listener-thread.ts";
import { defaultIntervals } from "./periodic-tasks.ts";
import { createDoubtMemory } from "./readiness.ts";

const nothing = {
  certificate: undefined,
  buckets: undefined,
  doubt: createDoubtMemory(),
  intervals: defaultIntervals,
};

function startThread(database: string, share: StorageShare, port = 0) {
  const failure = Promise.withResolvers<string>();
  const thread = new ListenerThread({
    config: { ...readConfig({ port: String(port), threads: "2", database }, {}), ...nothing },
    share,
    log: createLog("off", () => {}),
    renderMetrics: () => Promise.reject(new Error("Failed to get memory usage")),
    onFailure: failure.resolve,
  });
  return { thread, failed: failure.promise };
}

test("a thread reports its counts, which are still known after it has stopped", async () => {
  using folder = makeTemporaryFolder();
  const database = join(folder.path, "plants.db");
  const storage = await openStorage(database, { isServing: true });
  const { thread, failed } = startThread(database, storage.share());
  // On a busy machine it may not be there yet when it is first asked.
  expect(await waitFor(() => thread.readReport())).toMatchObject({ counts: { brokenStreams: 0 } });
  await thread.stop();
  expect(await thread.readReport()).toMatchObject({ counts: { brokenStreams: 0 } });
  // Stopping on request is no failure.
  expect(await Promise.race([failed, Bun.sleep(100).then(() => "none")])).toBe("none");
  await storage.close();
});

test("a thread that cannot open is reported, with the reason", async () => {
  using folder = makeTemporaryFolder();
  const { thread, failed } = startThread(join(folder.path, "missing/\0.db"), {
    state: undefined,
    transfer: [],
  });
  expect(await failed).toStartWith("Cannot open ");
  await thread.stop();
});

test("metrics that cannot be rendered give a 500, each time they are requested", async () => {
  using folder = makeTemporaryFolder();
  const database = join(folder.path, "plants.db");
  const storage = await openStorage(database, { isServing: true });
  const probe = Bun.serve({ port: 0, fetch: () => new Response() });
  const port = probe.port ?? 0;
  await probe.stop(true);
  const { thread } = startThread(database, storage.share(), port);
  const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`).catch(() => undefined);
  await waitFor(() => ask("/healthz"));
  for (let turn = 0; turn < 2; turn++) expect((await ask("/metrics"))?.status).toBe(500);
  await thread.stop();
  await storage.close();
});

test("reading counts leaves nothing behind in memory", async () => {
  using folder = makeTemporaryFolder();
  const database = join(folder.path, "plants.db");
  const storage = await openStorage(database, { isServing: true });
  const { thread } = startThread(database, storage.share());
  const countPromises = () => {
    Bun.gc(true);
    return heapStats().objectTypeCounts.Promise ?? 0;
  };
  await thread.readReport();
  const before = countPromises();
  for (let count = 0; count < 1_000; count++) await thread.readReport();
  expect(countPromises() - before).toBeLessThan(100);
  await thread.stop();
  await storage.close();
});
