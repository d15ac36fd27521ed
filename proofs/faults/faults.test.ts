/** File operations that fail: on a full disk, one that can't sync, and one without links. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { countPlants, fillStore } from "../../testing/filled-store.ts";
import {
  type RunningService,
  readOutput,
  spawnProgram,
  startService,
  waitFor,
} from "../../testing/running-service.ts";
import { skipsUnless } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { InterposedIo, isInterposable } from "../interposed-io/interposed-io.ts";

setDefaultTimeout(120_000);

const isSkipped = skipsUnless(isInterposable, "needs Linux on x64 or arm64");

const disks = [
  {
    state: "is full",
    failure: { kinds: ["write"], error: "ENOSPC" },
    refusal: { status: 507, detail: "Nothing was changed" },
    readyStatus: 200,
  },
  {
    state: "fails to sync",
    failure: { kinds: ["sync"], error: "EIO" },
    refusal: { status: 503, detail: "outcome is unknown" },
    readyStatus: 503,
  },
] as const;

describe.skipIf(isSkipped).each(disks)("while the disk $state", (disk) => {
  let stack: AsyncDisposableStack;
  let io: InterposedIo;
  let service: RunningService;

  beforeEach(async () => {
    stack = new AsyncDisposableStack();
    const folder = stack.use(makeTemporaryFolder());
    io = stack.use(new InterposedIo(folder.path));
    service = stack.use(
      await startService({
        database: join(folder.path, "plants.db"),
        // One, because each thread is ready or not by its own commits.
        args: ["--threads", "1"],
        variables: io.variables,
      }),
    );
    expect((await createFern()).status).toBe(201);
    io.fail(disk.failure);
  });

  afterEach(() => stack.disposeAsync());

  function createFern(): Promise<Response> {
    return service.call("POST /plants", { body: '{"name":"Fern"}' });
  }

  async function statusOf(request: string): Promise<number> {
    return (await service.call(request)).status;
  }

  test("writes are refused, each time, and the refusal says what became of them", async () => {
    for (let round = 0; round < 3; round++) {
      const created = await createFern();
      expect(created.status).toBe(disk.refusal.status);
      expect(await created.text()).toContain(disk.refusal.detail);
      expect(await statusOf("DELETE /plants/1")).toBe(disk.refusal.status);
    }
  });

  test("reads go on, also after a write was refused", async () => {
    for (let round = 0; round < 3; round++) {
      expect((await createFern()).status).toBe(disk.refusal.status);
      expect(await statusOf("GET /plants")).toBe(200);
    }
  });

  test(`/readyz responds with ${disk.readyStatus} once a write was refused`, async () => {
    for (let round = 0; round < 3; round++) {
      expect((await createFern()).status).toBe(disk.refusal.status);
      expect(await statusOf("GET /readyz")).toBe(disk.readyStatus);
    }
  });

  test("failed commits are counted", async () => {
    await createFern();

    const metrics = await (await service.call("GET /metrics")).text();
    expect(metrics).toMatch(/^plantstore_failed_commits_total\{.+\} [1-9]/m);
  });

  test("nothing else is broken: once the disk recovers, so does the service", async () => {
    for (let round = 0; round < 3; round++) {
      expect((await createFern()).status).toBe(disk.refusal.status);
    }

    io.heal();

    expect((await createFern()).status).toBe(201);
    expect(await statusOf("DELETE /plants/1")).toBe(204);
    expect(await statusOf("GET /plants")).toBe(200);
    expect(await statusOf("GET /readyz")).toBe(200);
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
  });
});

describe.skipIf(isSkipped)("where a file system has no links, a backup", () => {
  let stack: DisposableStack;
  let io: InterposedIo;
  let database = "";
  let target = "";

  beforeEach(async () => {
    stack = new DisposableStack();
    const source = stack.use(makeTemporaryFolder());
    database = join(source.path, "plants.db");
    // So many that a file can appear while the backup is made.
    await fillStore(database, 20_000);

    const folder = stack.use(makeTemporaryFolder());
    target = join(folder.path, "backup.db");
    io = stack.use(new InterposedIo(folder.path));
    io.fail({ kinds: ["link"], error: "EPERM" });
  });

  afterEach(() => stack.dispose());

  function startBackup() {
    return spawnProgram(["backup", target, "--database", database], io.variables);
  }

  function findPartialFiles(): string[] {
    return readdirSync(join(target, "..")).filter((name) => name.endsWith(".partial"));
  }

  test("gets its name nevertheless", async () => {
    const { exitCode, errors } = await readOutput(startBackup());

    expect(errors).toBe("");
    expect(exitCode).toBe(0);
    expect(io.failed).toBe(1);
    expect(await countPlants(target)).toBe(20_000);
    expect(findPartialFiles()).toEqual([]);
  });

  test("replaces no file that appears while it is made", async () => {
    const backup = startBackup();
    await waitFor(() => findPartialFiles().length > 0 || undefined);
    writeFileSync(target, "precious");

    expect(await readOutput(backup)).toEqual({
      exitCode: 1,
      out: "",
      errors: `plantstore: ${target} exists already.\n`,
    });
    expect(io.failed).toBe(1);
    expect(readFileSync(target, "utf8")).toBe("precious");
    expect(findPartialFiles()).toEqual([]);
  });
});
