/** The running service: its first start, its log, how it stops, and tokens that are revoked. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { KeptConnection, writeRequest } from "../../testing/kept-connection.ts";
import { makeDatabase } from "../../testing/postgres-server.ts";
import { serveHere, startService, waitFor } from "../../testing/running-service.ts";
import { skipsWithout } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";

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

  test("on an open address makes no token and says how to; the log has the settings, without secrets", async () => {
    await using database = await makeDatabase();
    const args = ["--host", "0.0.0.0", "--database-pool-size", "7"];
    const variables = { PLANTSTORE_PROT: "80", PLANTSTORE_PORT_80_TCP: "as Kubernetes sets it" };
    await using service = await startService({ database: database.url, args, variables });
    const command = "\n  plantstore token create USER, with the same PLANTSTORE_DATABASE";
    await waitFor(() => service.output().errors.includes(command) || undefined);
    const { out, errors } = service.output();
    expect(errors).not.toContain("plant_");
    const masked = database.url.replace(/:[^:]*@/, "@");
    const [mistyped, created, started] = Bun.JSONL.parse(out);
    const typo = { variable: "PLANTSTORE_PROT", meant: "PLANTSTORE_PORT" };
    expect(mistyped).toMatchObject({ event: "unknown variable", ...typo });
    const creation = { event: "created a new store", database: masked, schema: "public" };
    expect(created).toMatchObject(creation);
    expect(started).toMatchObject({
      event: "started",
      settings: {
        host: "0.0.0.0",
        port: "0",
        database: masked,
        "database-pool-size": "7",
        threads: "1",
        "rate-limit": "off",
      },
    });
    expect(out + errors).not.toContain(new URL(database.url).password);
  });
});

const probes = ["/healthz", "/readyz", "/metrics"];

test("the log has one line a request, with who and what, and none of a probe unless it is debug", async () => {
  await using service = await serveHere();
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;
  const headers = { "x-request-id": "my-request", traceparent };
  await service.call("DELETE /plants/12", { headers });
  for (const path of probes) await service.call(`GET ${path}`);
  await service.call("GET /plants", { token: "plant_wrong", headers: { "x-request-id": "no" } });
  const [deleted, refused, ...others] = service.readLog("request");
  expect(others).toEqual([]);
  expect(deleted).toMatchObject({
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
  expect(refused).toMatchObject({ status: 401, requestId: "no" });
  expect(refused).not.toHaveProperty("user");
  expect(refused).not.toHaveProperty("tokenId");

  await using verbose = await serveHere({ "log-level": "debug" });
  for (const path of probes) await verbose.call(`GET ${path}`);
  expect(verbose.readLog("request").map(({ route }) => route)).toEqual(probes);
});

test("a stop by a Ctrl+C that npm passes on a second time finishes every request, and exits with 0", async () => {
  await using service = await startService({ args: ["--threads", "1"] });
  const says = (text: string) => waitFor(() => service.output().out.includes(text) || undefined);
  // Their bodies are not whole yet. Once others have their responses, these requests have begun.
  const body = '{"name":"Fern"}';
  const request = writeRequest("POST /plants", { token: service.token, body });
  const open = () => KeptConnection.open({ port: service.port });
  const connections = await Promise.all(Array.from({ length: 8 }, open));
  for (const connection of connections) connection.sendPart(request.slice(0, -5));
  for (let count = 0; count < 3; count++) await service.call("GET /plants");
  // A terminal that closes never ends it.
  service.signal("SIGHUP");
  await says("SIGHUP ignored");
  // Not the same twice, of which the system would make one.
  service.signal("SIGINT");
  service.signal("SIGTERM");
  await says('"event":"stopping"');
  service.signal("SIGINT");
  for (const connection of connections) {
    const { status, headers } = await connection.ask(request.slice(-5));
    // The connection closes after it, and another request on it would be lost.
    expect([status, headers.get("connection")]).toEqual([201, "close"]);
  }
  expect(await service.exited).toBe(0);
  await says('"event":"stopped"');
  expect(existsSync(`${service.database}-wal`)).toBe(false);
});
