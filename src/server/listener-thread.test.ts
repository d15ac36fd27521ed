/**
 * The main thread's end of a thread that listens: what it learns of one that stops or cannot start.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { readConfig } from "../config.ts";
import { createLog } from "../log.ts";
import { openStorage } from "../storage/open.ts";
import type { StorageShare } from "../storage/storage.ts";
import { ListenerThread } from "./listener-thread.ts";
import { defaultIntervals } from "./periodic-tasks.ts";
import { createDoubtMemory } from "./readiness.ts";

const nothing = {
  certificate: undefined,
  buckets: undefined,
  doubt: createDoubtMemory(),
  metricsChannel: "metrics",
  intervals: defaultIntervals,
};

function startThread(database: string, share: StorageShare) {
  const failure = Promise.withResolvers<string>();
  const thread = new ListenerThread({
    config: { ...readConfig({ port: "0", threads: "2", database }, {}), ...nothing },
    share,
    log: createLog("off", () => {}),
    onFailure: failure.resolve,
  });
  return { thread, failed: failure.promise };
}

test("a thread that stops on request has not failed", async () => {
  using folder = makeTemporaryFolder();
  const database = join(folder.path, "plants.db");
  const storage = await openStorage(database, { isServing: true });
  const { thread, failed } = startThread(database, storage.share());
  await thread.stop();
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
