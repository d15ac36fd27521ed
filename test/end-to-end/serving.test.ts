/** The running program over a real socket: first start, the three operations, logs, stopping. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { makeDatabase } from "../postgres-server.ts";
import { KeptConnection, writeRequest } from "../reliability/kept-connection.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { runProgram, startService, waitFor } from "./running-service.ts";

describe("the first start", () => {
  test("makes the folder and prints a token", async () => {
    using folder = makeTemporaryFolder();
    const database = join(folder.path, "new", "plants.db");
    await using service = await startService({ database });
    expect(service.token).toMatch(/^plant_\w{49}$/);
    expect(service.output().errors.match(/curl /g)).toHaveLength(3);
    expect(existsSync(database)).toBe(true);
  });

  test.skipIf(Bun.which("curl") === null)("prints lines to paste that work", async () => {
    await using service = await startService();
    const { errors } = service.output();
    const [, lines = ""] = /^( +export[\s\S]*)/m.exec(errors) ?? [];
    const pasted = lines.replace(/^\S.*$/gm, "").replaceAll("curl -i", "curl -is");
    const out = await Bun.$`sh -euc ${pasted}`.env({ PATH: process.env.PATH ?? "" }).text();
    const answers = out.split(/(?=HTTP\/1\.1 )/).map((answer) => {
      const [head = "", body] = answer.split("\r\n\r\n");
      return `${head.split(" ")[1]} ${body}`;
    });
    expect(answers).toEqual([
      '201 {"name":"Monstera","tag":"living room"}',
      '200 [{"name":"Monstera","tag":"living room"}]',
      "204 ",
    ]);
  });

  test("prints no second token, and the first one and the plants are still good", async () => {
    using folder = makeTemporaryFolder();
    const database = join(folder.path, "plants.db");
    let token: string;
    {
      await using first = await startService({ database });
      token = first.token;
      await first.call("POST /plants", { body: JSON.stringify({ name: "Fern" }) });
      first.signal("SIGTERM");
      expect(await first.exited).toBe(0);
    }
    await using second = await startService({ database });
    expect(second.token).toBe("");
    expect(await (await second.call("GET /plants", { token })).json()).toHaveLength(1);
  });

  test.each<[how: string, variables: Record<string, string>, command: string]>([
    ["by itself", {}, "\n  plantstore token create USER --database "],
    [
      "by npm",
      { npm_lifecycle_event: "start" },
      "\n  npx plantstore token create USER --database ",
    ],
  ])("on an open address makes no token and, started %s, says how to", async (...given) => {
    const [, variables, command] = given;
    await using service = await startService({ args: ["--host", "0.0.0.0"], variables });
    await waitFor(() => service.output().errors.includes(command) || undefined);
    expect(service.token).toBe("");
    expect(service.output().errors).not.toContain("plant_");
  });
});

describe("the log", () => {
  test("has one JSON line a request, with who and what, and never a token", async () => {
    await using service = await startService();
    const headers = { "x-request-id": "my-request" };
    await service.call("DELETE /plants/12", { headers });
    await service.call("GET /plants", { token: "plant_wrong", headers: { "x-request-id": "no" } });
    service.signal("SIGTERM");
    await service.exited;
    const { out } = await waitFor(() =>
      service.output().out.includes('"stopped"') ? service.output() : undefined,
    );
    const lines = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const events = lines.map(({ event }) => event);
    // Lines of other threads may come in a little later than those of this one.
    expect(events.toSorted()).toEqual(["request", "request", "started", "stopped", "stopping"]);
    expect([events.at(0), events.at(-1)]).toEqual(["started", "stopped"]);
    const [deleted, refused] = ["my-request", "no"].map((requestId) =>
      lines.find((line) => line.requestId === requestId),
    );
    expect(deleted).toMatchObject({
      method: "DELETE",
      route: "/plants/{id}",
      status: 404,
      user: "gardener",
      garden: "gardener",
      requestId: "my-request",
    });
    expect(deleted.durationMs).toBeGreaterThan(0);
    expect(refused).toMatchObject({ status: 401 });
    expect(refused).not.toHaveProperty("user");
    expect(out).not.toContain("plant_");
  });
});

describe("stopping", () => {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "on %s answers what is under way and exits 0",
    async (signal) => {
      await using service = await startService();
      // A body that is half sent keeps its request under way while the signal comes.
      const half = new Promise<Response>((resolve, reject) => {
        const body = new ReadableStream({
          async start(controller) {
            controller.enqueue(new TextEncoder().encode('{"name":'));
            await Bun.sleep(200);
            service.signal(signal);
            await Bun.sleep(200);
            controller.enqueue(new TextEncoder().encode('"Fern"}'));
            controller.close();
          },
        });
        service.call("POST /plants", { body }).then(resolve, reject);
      });
      const { status, headers } = await half;
      expect(status).toBe(201);
      // Behind it the connection is closed, and another request on it would be lost.
      expect(headers.get("connection")).toBe("close");
      expect(await service.exited).toBe(0);
      expect(existsSync(`${service.database}-wal`)).toBe(false);
    },
  );

  test("answers every request on connections in use, and tells them to come again", async () => {
    await using service = await startService();
    const { port, token } = service;
    const request = writeRequest("GET /plants", { token });
    const isLast = ([name, value]: readonly [string, string]) =>
      name.toLowerCase() === "connection" && value === "close";
    const clients = Array.from({ length: 8 }, async () => {
      const connection = await KeptConnection.open({ port, isSecure: false });
      // A request that got no answer would fail here.
      while (
        !(await Promise.all(connection.send(request))).some((each) => each.headers.some(isLast))
      );
      connection.close();
    });
    await Bun.sleep(200);
    service.signal("SIGTERM");
    await Promise.all(clients);
    expect(await service.exited).toBe(0);
  });

  test("takes a Ctrl+C that npm passes on a second time for one", async () => {
    await using service = await startService();
    await service.call("GET /plants");
    service.signal("SIGINT");
    service.signal("SIGINT");
    expect(await service.exited).toBe(0);
    await waitFor(() => service.output().out.includes('"event":"stopped"') || undefined);
  });

  test("ends at once at a second signal that comes later", async () => {
    await using service = await startService();
    // A body that never comes whole would hold the first one up.
    const socket = await Bun.connect({
      hostname: "127.0.0.1",
      port: service.port,
      socket: { data() {} },
    });
    const { token } = service;
    socket.write(
      `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"name":',
    );
    await Bun.sleep(200);
    service.signal("SIGTERM");
    await waitFor(() => service.output().out.includes('"stopping"') || undefined);
    await Bun.sleep(700);
    service.signal("SIGTERM");
    expect(await service.exited).toBe(1);
    socket.end();
  });
});

test("every answer says when it was made", async () => {
  await using service = await startService();
  for (const method of ["GET", "HEAD", "POST", "OPTIONS"]) {
    const { headers } = await service.call(`${method} /plants`);
    const date = Date.parse(headers.get("date") ?? "");
    expect(date).toBeWithin(Date.now() - 5_000, Date.now() + 1_000);
  }
});

describe.each(["SQLite", "PostgreSQL"])("on %s", (engine) => {
  test("a token is refused within 5 s of the end of the command that revoked it", async () => {
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

    const endedAtMs = performance.now();
    let acceptedAtMs = endedAtMs;
    for (let refused = 0; refused < 32; ) {
      if ((await ask()) === 401) refused++;
      else {
        refused = 0;
        acceptedAtMs = performance.now();
        await Bun.sleep(50);
      }
    }
    expect(acceptedAtMs - endedAtMs).toBeLessThan(5_000);
  });
});
