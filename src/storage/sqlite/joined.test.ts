/**
 * Several threads on one file: each joins the worker that commits, and gets its own outcomes.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { create, created } from "../../../test/storage/tested-storage.ts";
import { makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { GroupCommit } from "../group-commit.ts";
import type { Storage } from "../storage.ts";
import { openSqlite } from "./engine.ts";
import { WorkerClient } from "./worker-client.ts";

/** The storage of two threads on one file. */
function openJoined() {
  const folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const first = openSqlite(path, { isServing: true });
  const second = openSqlite(path, { isServing: true, share: first.share().state });
  return {
    path,
    first,
    second,
    async [Symbol.asyncDispose]() {
      await second.close();
      await first.close();
      folder[Symbol.dispose]();
    },
  };
}

test("a group that fails does not fail the group of another thread that shares its commit", async () => {
  await using joined = openJoined();
  const { path, first, second } = joined;
  const intruder = new Database(path);
  intruder.run(`CREATE TRIGGER stop BEFORE INSERT ON plants WHEN new.id = 3
    BEGIN SELECT raise(ROLLBACK, 'stopped'); END`);
  const writerOf = (storage: Storage) => new GroupCommit(storage);
  const results = await Promise.all([
    writerOf(first)
      .writeAll([create({ id: 2n }), create({ id: 3n })])
      .catch((error) => error),
    writerOf(second).writeAll([create({ id: 4n })]),
  ]);
  expect(results[0]).toBeInstanceOf(Error);
  expect(results[1]).toEqual([created(4n)]);
  expect((await second.list("home", undefined, 10)).map(({ id }) => id)).toEqual([4n]);
  intruder.close();
});

test("of writes that waited when the worker broke down the outcome is unknown", async () => {
  const { port1: worker, port2: port } = new MessageChannel();
  const thread = WorkerClient.join({ port, versions: new SharedArrayBuffer(4) });
  const write = () => thread.apply([create()]).catch((error) => error);
  const received = new Promise((resolve) => {
    worker.onmessage = resolve;
  });
  const waiting = write();
  await received;
  worker.close();
  expect(await waiting).toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("outcome is unknown"),
  });
  expect(await write()).toMatchObject({
    code: "unavailable",
    message: "The storage cannot take writes.",
  });
  await thread.close();
});
