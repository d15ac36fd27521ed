/** Many threads, one service: whichever thread a connection falls to, it sees and says the same. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { type RunningService, startService, waitFor } from "./running-service.ts";

const threads = 4;
const start = () => startService({ args: ["--threads", String(threads)] });

/** Each on a connection of its own, which the kernel gives to one thread or another. */
function call(service: RunningService, request: string, init: RequestInit = {}): Promise<Response> {
  return service.call(request, { ...init, headers: { connection: "close" } });
}

/** Ids of requests begin with what is drawn once a thread. */
const threadOf = (response: Response) => response.headers.get("x-request-id")?.split("-")[0];

async function waitForAll(service: RunningService): Promise<void> {
  const seen = new Set<string | undefined>();
  await waitFor(async () => {
    seen.add(threadOf(await call(service, "GET /healthz")));
    return seen.size === threads ? true : undefined;
  });
}

describe("a service on several threads", () => {
  test("answers on every one of them, and shows a plant on all as soon as it is created", async () => {
    await using service = await start();
    await waitForAll(service);
    for (let id = 1; id <= 20; id++) {
      // Every thread may keep the answer of this list, which the plant makes out of date.
      await Promise.all(Array.from({ length: 16 }, () => call(service, "GET /plants?fields=id")));
      const body = JSON.stringify({ name: "Fern", id });
      expect((await call(service, "POST /plants", { body })).status).toBe(201);
      const lists = Array.from({ length: 16 }, async () => {
        const plants = await (await call(service, "GET /plants?fields=id")).json();
        return plants.length;
      });
      expect(new Set(await Promise.all(lists))).toEqual(new Set([id]));
    }
  });

  test("adds up in /metrics what each counted, whichever is asked", async () => {
    await using service = await start();
    await waitForAll(service);
    const body = JSON.stringify({ name: "Fern" });
    await Promise.all(Array.from({ length: 50 }, () => call(service, "POST /plants", { body })));
    for (let turn = 0; turn < 8; turn++) {
      const text = await (await call(service, "GET /metrics")).text();
      expect(text).toContain('operation="createPlant",method="POST",status="201"} 50\n');
      expect(text).toContain("\nplantstore_writes_total 50\n");
      expect(text.match(/^process_resident_memory_bytes /gm)).toHaveLength(1);
    }
  });

  test("writes one log, line by line", async () => {
    await using service = await start();
    await waitForAll(service);
    await Promise.all(Array.from({ length: 400 }, () => call(service, "GET /plants?limit=1")));
    const lines = await waitFor(() => {
      const all = service.output().out.trimEnd().split("\n");
      return all.filter((line) => line.includes('"/plants"')).length === 400 ? all : undefined;
    });
    const ids = lines.map((line) => (JSON.parse(line) as { requestId?: string }).requestId);
    expect(new Set(ids.map((id) => id?.split("-")[0])).size).toBeGreaterThanOrEqual(threads);
  });

  test("drains all of them when it is told to stop, and keeps every plant that it answered", async () => {
    using folder = makeTemporaryFolder();
    await using service = await startService({
      args: ["--threads", String(threads)],
      database: `${folder.path}/plants.db`,
    });
    await waitForAll(service);
    let answered = 0;
    let isOver = false;
    const clients = Array.from({ length: 32 }, async () => {
      while (!isOver) {
        const body = JSON.stringify({ name: "Fern" });
        const response = await call(service, "POST /plants", { body }).catch(() => undefined);
        // Once it has stopped, nobody listens; until then every answer is a good one.
        if (!response) return;
        expect(response.status).toBe(201);
        answered++;
      }
    });
    await waitFor(() => (answered > 200 ? true : undefined));
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
    isOver = true;
    await Promise.all(clients);
    await using again = await startService({ database: service.database });
    const token = service.token;
    const plants = await (await again.call("GET /plants", { token })).json();
    expect(plants.length).toBeGreaterThanOrEqual(answered);
  });
});

describe("a service whose thread dies", () => {
  const program = join(import.meta.dir, "dying-thread.ts");

  test.each([
    ["a listener", "thread.ts", "its end"],
    ["a listener", "thread.ts", "an error"],
    ["the writer", "worker.ts", "its end"],
    ["the writer", "worker.ts", "an error"],
  ])("ends with exit code 1 and says why, if %s is lost (%s, by %s)", async (...given) => {
    const [, name, how] = given;
    await using service = await startService({
      args: ["--threads", "2", "--log", "json"],
      program,
      variables: { DYING_THREAD: name, DYING_BY: how },
    });
    expect(await service.exited).toBe(1);
    await waitFor(() => service.output().errors.includes("A thread broke down") || undefined);
    expect(service.output().out).toContain('"event":"broken down"');
  });
});
