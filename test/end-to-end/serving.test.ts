/** The running program: its first start, its log, how it stops, and tokens that are revoked. */
import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { existsSync, renameSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { KeptConnection, writeRequest } from "../../proofs/kept-connection.ts";
import { makeDatabase } from "../postgres-server.ts";
import { skipsWithout } from "../skipping.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { type RunningService, runProgram, startService, waitFor } from "./running-service.ts";

describe("the first start", () => {
  test.skipIf(skipsWithout("curl"))(
    "makes the folder, and prints a token and lines to paste that work",
    async () => {
      using folder = makeTemporaryFolder();
      const database = join(folder.path, "new", "plants.db");
      await using service = await startService({ database });
      expect(service.token).toMatch(/^plant_\w{49}$/);
      expect(existsSync(database)).toBe(true);
      const [, lines = ""] = /^( +export[\s\S]*)/m.exec(service.output().errors) ?? [];
      const pasted = lines.replace(/^\S.*$/gm, "").replaceAll("curl -i", "curl -is");
      const out = await Bun.$`sh -euc ${pasted}`.env({ PATH: process.env.PATH ?? "" }).text();
      const responses = out.split(/(?=HTTP\/1\.1 )/).map((response) => {
        const [head = "", body] = response.split("\r\n\r\n");
        return `${head.split(" ")[1]} ${body}`;
      });
      expect(responses).toEqual([
        '201 {"name":"Monstera","tag":"living room"}',
        '200 [{"name":"Monstera","tag":"living room"}]',
        "204 ",
      ]);
    },
  );

  test("on an open address makes no token, and says how to", async () => {
    await using service = await startService({ args: ["--host", "0.0.0.0"] });
    const command = "\n  plantstore token create USER --database ";
    await waitFor(() => service.output().errors.includes(command) || undefined);
    expect(service.token).toBe("");
    expect(service.output().errors).not.toContain("plant_");
  });
});

describe("the log", () => {
  test("has one JSON line a request, with who and what", async () => {
    await using service = await startService();
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;
    const headers = { "x-request-id": "my-request", traceparent };
    await service.call("DELETE /plants/12", { headers });
    await service.call("GET /plants", { token: "plant_wrong", headers: { "x-request-id": "no" } });
    service.signal("SIGTERM");
    await service.exited;
    const { out } = await waitFor(() =>
      service.output().out.includes('"stopped"') ? service.output() : undefined,
    );
    const lines: Record<string, unknown>[] = Bun.JSONL.parse(out) as never;
    // Other threads' lines may arrive a little later than this one's.
    const events = lines.map(({ event }) => event).toSorted();
    const own = ["request", "request", "started", "stopped", "stopping"];
    expect(events).toEqual(["created a new store", ...own]);
    expect(lines[0]).toMatchObject({ event: "created a new store", database: service.database });
    const { out: tokens } = await runProgram(["token", "list", "--json"], {
      PLANTSTORE_DATABASE: service.database,
    });
    const deleted = lines.find(({ requestId }) => requestId === "my-request");
    const refused = lines.find(({ requestId }) => requestId === "no");
    expect(deleted).toMatchObject({
      method: "DELETE",
      route: "/plants/{id}",
      status: 404,
      user: "gardener",
      garden: "gardener",
      tokenId: JSON.parse(tokens)[0].id,
      durationMs: expect.any(Number),
      traceId,
    });
    expect(refused).toMatchObject({ status: 401 });
    expect(refused).not.toHaveProperty("user");
    expect(refused).not.toHaveProperty("tokenId");
  });

  test("has the settings in force when it starts, without secrets", async () => {
    await using database = await makeDatabase();
    await using service = await startService({
      database: database.url,
      args: ["--database-pool-size", "7"],
    });
    const { out } = service.output();
    const [created, started] = Bun.JSONL.parse(out) as unknown[];
    const masked = database.url.replace(/:[^:]*@/, "@");
    const creation = { event: "created a new store", database: masked, schema: "public" };
    expect(created).toMatchObject(creation);
    expect(started).toMatchObject({
      event: "started",
      settings: {
        host: "127.0.0.1",
        port: "0",
        database: masked,
        "database-pool-size": "7",
        threads: "1",
        "rate-limit": "off",
      },
    });
    expect(out).not.toContain(new URL(database.url).password);
  });
});

describe("the log level", () => {
  const probes = ["/healthz", "/readyz", "/metrics"];

  /** The routes of the requests in the log of a service that has stopped. */
  async function logged(args: readonly string[], paths: readonly string[]): Promise<string[]> {
    await using service = await startService({ args: ["--threads", "2", ...args] });
    for (const path of paths) await service.call(`GET ${path}`);
    service.signal("SIGTERM");
    await service.exited;
    await waitFor(() => service.output().out.includes('"stopped"') || undefined);
    return [...service.output().out.matchAll(/"route":"([^"]*)"/g)].map(([, route = ""]) => route);
  }

  test("leaves out probes by default, and includes them as debug", async () => {
    expect(await logged([], [...probes, "/plants"])).toEqual(["/plants"]);
    const all = await logged(["--log-level", "debug"], [...probes, "/plants"]);
    expect(all.toSorted()).toEqual([...probes, "/plants"].toSorted());
  });

  test("never leaves out a probe that fails, nor why", async () => {
    // A thread that joins later would not find the file.
    await using service = await startService({ args: ["--threads", "1"] });
    renameSync(service.database, `${service.database}.gone`);
    expect((await service.call("GET /readyz")).status).toBe(503);
    const readLines = () => service.output().out.trim().split("\n");
    const lines = await waitFor(() => (readLines().length === 4 ? readLines() : undefined));
    const events = lines.slice(2).map((line) => JSON.parse(line));
    expect(events).toContainEqual(expect.objectContaining({ event: "database lost" }));
    expect(events).toContainEqual(
      expect.objectContaining({ level: "warn", event: "request", route: "/readyz", status: 503 }),
    );
  });
});

test("SIGHUP never ends the service", async () => {
  await using service = await startService();
  service.signal("SIGHUP");
  await waitFor(() => service.output().out.includes("SIGHUP ignored") || undefined);
  expect((await service.call("GET /plants")).status).toBe(200);
});

/** A create whose body is still to come, once the service has its head. */
async function openHalf({ port, token }: RunningService): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  const type = { "Content-Type": "application/json", "Content-Length": "15" };
  const headers = { ...type, Expect: "100-continue" };
  socket.write(writeRequest("POST /plants", { token, headers }));
  expect(String(await once(socket, "data"))).toStartWith("HTTP/1.1 100 ");
  return socket;
}

describe("stopping", () => {
  test("finishes requests in flight and exits with 0", async () => {
    await using service = await startService();
    const half = await openHalf(service);
    service.signal("SIGTERM");
    await waitFor(() => service.output().out.includes('"stopping"') || undefined);
    half.write('{"name":"Fern"}');
    const response = String(await once(half, "data"));
    expect(response).toStartWith("HTTP/1.1 201 ");
    // The connection closes after it, and another request on it would be lost.
    expect(response).toMatch(/^connection: close\r$/im);
    expect(await service.exited).toBe(0);
    expect(existsSync(`${service.database}-wal`)).toBe(false);
  });

  test("responds to every request on open connections, and closes them", async () => {
    await using service = await startService();
    const { port, token } = service;
    const request = writeRequest("GET /plants", { token });
    const isLast = ([name, value]: readonly [string, string]) =>
      name.toLowerCase() === "connection" && value === "close";
    const connections = await Promise.all(
      Array.from({ length: 8 }, () => KeptConnection.open({ port })),
    );
    for (const connection of connections) await connection.ask(request);
    const clients = connections.map(async (connection) => {
      // A request without a response would fail here.
      while (!(await connection.ask(request)).headers.some(isLast));
      connection.close();
    });
    service.signal("SIGTERM");
    await Promise.all(clients);
    expect(await service.exited).toBe(0);
  });

  test("counts a Ctrl+C that npm passes on a second time as one", async () => {
    await using service = await startService();
    await service.call("GET /plants");
    service.signal("SIGINT");
    service.signal("SIGINT");
    expect(await service.exited).toBe(0);
    await waitFor(() => service.output().out.includes('"event":"stopped"') || undefined);
  });

  test("ends at once at a second signal that comes later", async () => {
    await using service = await startService();
    // A body that never comes would hold the first one up.
    const half = await openHalf(service);
    service.signal("SIGTERM");
    await waitFor(() => service.output().out.includes('"stopping"') || undefined);
    await Bun.sleep(700);
    service.signal("SIGTERM");
    expect(await service.exited).toBe(1);
    half.destroy();
  });
});

describe.each(["SQLite", "PostgreSQL"])("on %s", (engine) => {
  test("a token is refused by all threads after the command that revoked it", async () => {
    await using own = engine === "SQLite" ? undefined : await makeDatabase();
    const threads = ["--threads", "2"];
    await using service = await startService({ args: threads, ...(own && { database: own.url }) });
    const variables = { PLANTSTORE_DATABASE: service.database };
    const token = (await runProgram(["token", "create", "bob"], variables)).out.trim();
    // Each on a connection of its own, which any thread may get.
    const ask = async () =>
      (await service.call("GET /plants", { token, headers: { connection: "close" } })).status;
    expect(await Promise.all(Array.from({ length: 16 }, ask))).not.toContain(401);
    const listed = await runProgram(["token", "list", "--json"], variables);
    const { id } = JSON.parse(listed.out).find(({ user }: { user: string }) => user === "bob");
    expect((await runProgram(["token", "revoke", id], variables)).exitCode).toBe(0);

    for (let refused = 0; refused < 32; ) {
      if ((await ask()) === 401) refused++;
      else refused = 0;
    }
  });
});
