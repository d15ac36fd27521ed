/** The running service: its first start, its log, and how it stops. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { KeptConnection, writeRequest } from "../../testing/kept-connection.ts";
import { makeDatabase, type TestDatabase } from "../../testing/postgres-server.ts";
import {
  type RunningService,
  serveHere,
  startService,
  waitFor,
} from "../../testing/running-service.ts";
import { skipsWithout } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

describe("the first start", () => {
  const folder = makeTemporaryFolder();
  const database = join(folder.path, "new", "plants.db");
  let service: RunningService;

  beforeAll(async () => {
    service = await startService({ database });
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  test("makes the database and its folder", () => {
    expect(existsSync(database)).toBe(true);
  });

  test("prints a token that works", async () => {
    expect(service.token).toMatch(/^plant_\w{49}$/);
    expect((await service.call("GET /plants")).status).toBe(200);
  });

  test.skipIf(skipsWithout("curl"))(
    "prints commands to paste, which create, list and delete a plant",
    async () => {
      const [, printed = ""] = /^( +export[\s\S]*)/m.exec(service.output().errors) ?? [];
      // Only the indented lines are commands. Without -s, curl would print its progress.
      const commands = printed.replace(/^\S.*$/gm, "").replaceAll("curl -i", "curl -is");

      const shell = Bun.$`sh -euc ${commands}`.env({ PATH: process.env.PATH ?? "" });
      const responses = (await shell.text()).split(/(?=HTTP\/1\.1 )/);

      expect(responses).toHaveLength(3);
      const [created, listed, deleted] = responses;
      expect(created).toStartWith("HTTP/1.1 201 ");
      expect(created).toEndWith('\r\n\r\n{"name":"Monstera","tag":"living room"}');
      expect(listed).toStartWith("HTTP/1.1 200 ");
      expect(listed).toEndWith('\r\n\r\n[{"name":"Monstera","tag":"living room"}]');
      expect(deleted).toStartWith("HTTP/1.1 204 ");
      expect(deleted).toEndWith("\r\n\r\n");
    },
  );
});

describe("the first start on an address that others can reach", () => {
  let database: TestDatabase;
  let maskedUrl: string;
  let service: RunningService;

  beforeAll(async () => {
    database = await makeDatabase();
    maskedUrl = database.url.replace(/:[^:]*@/, "@");
    service = await startService({
      database: database.url,
      args: ["--host", "0.0.0.0", "--database-pool-size", "7"],
      variables: {
        PLANTSTORE_PROT: "80",
        // As Kubernetes sets it for a service with the name plantstore.
        PLANTSTORE_PORT_80_TCP: "tcp://10.0.0.1:80",
      },
    });
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    await database.drop();
  });

  const readLog = () => Bun.JSONL.parse(service.output().out) as { event: string }[];

  test("makes no token, and prints the command that makes one", async () => {
    const command = "\n  plantstore token create USER, with the same PLANTSTORE_DATABASE";

    await waitFor(() => service.output().errors.includes(command) || undefined);

    expect(service.output().errors).not.toContain("plant_");
  });

  test("logs a mistyped variable, that it created a store, and its start", () => {
    const [mistyped, created, started] = readLog();

    expect(mistyped).toMatchObject({
      event: "unknown variable",
      variable: "PLANTSTORE_PROT",
      meant: "PLANTSTORE_PORT",
    });
    expect(created).toMatchObject({
      event: "created a new store",
      database: maskedUrl,
      schema: "public",
    });
    expect(started).toMatchObject({ event: "started" });
  });

  test("logs its settings, including those that it wasn't given", () => {
    expect(readLog().find(({ event }) => event === "started")).toMatchObject({
      settings: {
        host: "0.0.0.0",
        port: "0",
        database: maskedUrl,
        "database-pool-size": "7",
        threads: "1",
        "rate-limit": "off",
      },
    });
  });

  test("prints no password", () => {
    const { password } = new URL(database.url);
    const { out, errors } = service.output();

    expect(out).not.toContain(password);
    expect(errors).not.toContain(password);
  });
});

describe("the log", () => {
  test("has one line for each request, with its user, token and outcome", async () => {
    await using service = await serveHere();
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";

    await service.call("DELETE /plants/12", {
      headers: { "x-request-id": "my-request", traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
    });

    const lines = service.readLog("request");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      method: "DELETE",
      route: "/plants/{id}",
      status: 404,
      user: "gardener",
      garden: "gardener",
      tokenId: expect.stringMatching(/^\w{10}$/),
      durationMs: expect.any(Number),
      requestId: "my-request",
      traceId,
    });
  });

  test("has a line without a user for a request with a wrong token", async () => {
    await using service = await serveHere();

    await service.call("GET /plants", {
      token: "plant_wrong",
      headers: { "x-request-id": "my-request" },
    });

    const lines = service.readLog("request");
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ status: 401, requestId: "my-request" });
    expect(lines[0]).not.toHaveProperty("user");
    expect(lines[0]).not.toHaveProperty("tokenId");
  });

  test("has no line for a probe that succeeds", async () => {
    await using service = await serveHere();

    await service.call("GET /healthz");
    await service.call("GET /readyz");
    await service.call("GET /metrics");

    expect(service.readLog("request")).toEqual([]);
  });

  test("has a line for each probe if its level is debug", async () => {
    await using service = await serveHere({ "log-level": "debug" });

    await service.call("GET /healthz");
    await service.call("GET /readyz");
    await service.call("GET /metrics");

    const routes = service.readLog("request").map(({ route }) => route);
    expect(routes).toEqual(["/healthz", "/readyz", "/metrics"]);
  });
});

describe("a service", () => {
  /** Waits until it has printed this text. */
  const untilItLogs = (service: RunningService, text: string) =>
    waitFor(() => service.output().out.includes(text) || undefined);

  test("goes on when its terminal closes", async () => {
    await using service = await startService();

    service.signal("SIGHUP");

    await untilItLogs(service, "SIGHUP ignored");
    expect((await service.call("GET /plants")).status).toBe(200);
  });

  test("finishes every request before it stops, even if npm passes a Ctrl+C on twice", async () => {
    await using service = await startService({ args: ["--threads", "1"] });
    const body = '{"name":"Fern"}';
    const request = writeRequest("POST /plants", { token: service.token, body });
    const connections: KeptConnection[] = [];
    for (let count = 0; count < 8; count++) {
      const connection = await KeptConnection.open({ port: service.port });
      connection.sendPart(request.slice(0, -5));
      connections.push(connection);
    }
    // Once others have their responses, these requests have begun, though their bodies aren't whole.
    for (let count = 0; count < 3; count++) await service.call("GET /plants");

    // Different signals, because the system would make one of two that are the same.
    service.signal("SIGINT");
    service.signal("SIGTERM");
    await untilItLogs(service, '"event":"stopping"');
    service.signal("SIGINT");

    for (const connection of connections) {
      const { status, headers } = await connection.ask(request.slice(-5));
      expect(status).toBe(201);
      // Another request on this connection would be lost.
      expect(headers.get("connection")).toBe("close");
    }
    expect(await service.exited).toBe(0);
  });

  test("exits with 0 when it is stopped, and leaves its data in one file", async () => {
    await using service = await startService();
    await service.call("POST /plants", { body: '{"name":"Fern"}' });
    expect(existsSync(`${service.database}-wal`)).toBe(true);

    service.signal("SIGTERM");

    expect(await service.exited).toBe(0);
    await untilItLogs(service, '"event":"stopped"');
    expect(existsSync(service.database)).toBe(true);
    expect(existsSync(`${service.database}-wal`)).toBe(false);
  });
});
