/**
 * The suites of power cuts and of faults see, and fail, what the real program does to its files.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { type Call, textOf } from "./call-log.ts";
import { InterposedIo, isInterposable } from "./interposed-io.ts";

setDefaultTimeout(60_000);

if (!isInterposable) {
  process.stderr.write("SKIPPED: calls are interposed on Linux only, on x64 and arm64.\n");
}

/** Without the index in memory, which is written through no call. */
function listFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => !name.endsWith("-shm"))
    .map((name) => join(folder, name))
    .toSorted();
}

/** The files as the calls leave them, one after the other. */
function doAgain(calls: readonly Call[]): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  const opened = new Map<number, string>();
  for (const call of calls.filter(({ error }) => error === 0)) {
    const path = opened.get(call.file) ?? "";
    const bytes = files.get(path) ?? Buffer.alloc(0);
    if (call.kind === "open") opened.set(call.file, textOf(call));
    if (call.kind === "unlink") files.delete(textOf(call));
    if (call.kind === "truncate") files.set(path, resize(bytes, call.at));
    if (call.kind === "write") {
      const changed = resize(bytes, Math.max(bytes.length, call.at + call.data.length));
      changed.set(call.data, call.at);
      files.set(path, changed);
    }
  }
  return files;
}

function resize(bytes: Buffer, size: number): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(Math.max(0, size - bytes.length))]).subarray(0, size);
}

async function create(service: RunningService, count = 1): Promise<number[]> {
  const replies = Array.from({ length: count }, (_, index) =>
    service.call("POST /plants", { body: `{"name":"Fern ${index}"}` }),
  );
  return (await Promise.all(replies)).map(({ status }) => status);
}

describe.skipIf(!isInterposable)("a process whose calls are interposed", () => {
  test("is seen in every call that changes its files, also those of its threads", async () => {
    using folder = makeTemporaryFolder();
    using io = new InterposedIo(folder.path);
    const database = join(folder.path, "plants.db");
    await using service = await startService({ database, variables: io.variables });
    // Several times as many pages as there are between two checkpoints.
    for (let round = 0; round < 40; round++) await create(service, 100);
    service.signal("SIGKILL");
    await service.exited;
    const files = doAgain(io.calls());
    for (const path of listFiles(folder.path)) {
      const isSame = readFileSync(path).equals(files.get(path) ?? Buffer.alloc(0));
      expect({ path, isSame }).toEqual({ path, isSame: true });
    }
    const checkpoints = io.calls().filter((call) => call.kind === "write" && call.at === 0);
    expect(checkpoints.length).toBeGreaterThan(3);
  });

  test("is seen in the order in which things happen", async () => {
    using folder = makeTemporaryFolder();
    using io = new InterposedIo(folder.path);
    const database = join(folder.path, "plants.db");
    const args = ["--threads", "1"];
    await using service = await startService({ database, args, variables: io.variables });
    io.note("before");
    expect(await create(service)).toEqual([201]);
    io.note("after");
    const calls = io.calls();
    const [from, to] = ["before", "after"].map((text) =>
      calls.findIndex((call) => call.kind === "note" && textOf(call) === text),
    );
    const kinds = calls.slice(from, (to ?? 0) + 1).map(({ kind }) => kind);
    const inOrder = kinds.filter((kind, index) => kind !== kinds[index - 1]).join(", ");
    // The first sync of the log by a connection is followed by that of the folder.
    expect(inOrder).toBe("note, write, sync, synced, open, sync, synced, close, note");
  });

  test("meets the errors that it is given, for as long as they last", async () => {
    using folder = makeTemporaryFolder();
    using io = new InterposedIo(folder.path);
    const database = join(folder.path, "plants.db");
    await using service = await startService({ database, variables: io.variables });
    expect(await create(service)).toEqual([201]);

    const third = io.fail({ kinds: ["sync"], error: "EIO", suffix: "-wal", first: 3, last: 3 });
    const statuses = [];
    for (let count = 0; count < 4; count++) statuses.push(...(await create(service)));
    expect(statuses).toEqual([201, 201, 503, 201]);
    expect(third.counts()).toEqual({ matched: 4, failed: 1 });

    io.fail({ kinds: ["write"], error: "ENOSPC" });
    expect([await create(service), await create(service)]).toEqual([[507], [507]]);
    io.heal();
    expect(await create(service)).toEqual([201]);

    const short = io.fail({ kinds: ["write"], error: "short", last: 1 });
    expect(await create(service)).toEqual([201]);
    expect(short.counts().failed).toBe(1);
    const halves = io.calls().filter(({ kind, result }) => kind === "write" && result === 12);
    expect(halves.length).toBeGreaterThan(0);
  });
});
