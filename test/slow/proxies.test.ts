/** Two instances behind nginx and HAProxy, with the configurations in deploy/. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { KeptConnection } from "../../testing/kept-connection.ts";
import { Patience } from "../../testing/patience.ts";
import { makeDatabase, type TestDatabase } from "../../testing/postgres-server.ts";
import { pickPorts } from "../../testing/processes.ts";
import {
  insist,
  makeCaller,
  makeToken,
  makeTokens,
  type RunningService,
  startService,
  waitFor,
} from "../../testing/running-service.ts";
import { skipsUnless } from "../../testing/skipping.ts";
import { findProgram, makeServerFolder, spawnServer } from "../../testing/system-servers.ts";

setDefaultTimeout(120_000);

const malformed = [
  "Host: a\r\nContent-Length: many\r\n\r\n",
  "Host: a b\r\n\r\n",
  `Host: a\r\nX: ${"x".repeat(20_000)}\r\n\r\n`,
];
const proxies = [
  { name: "nginx", config: "nginx/plantstore.conf", unavailable: 502, malformed },
  // HAProxy before 3.2.3 has a page of its own for them, whatever the configuration says.
  { name: "haproxy", config: "haproxy/haproxy.cfg", unavailable: 503, malformed: [] },
] as const;

describe.each(proxies)("behind $name", ({ name, config, unavailable, malformed }) => {
  const program = findProgram(name);
  const isSkipped = skipsUnless(program !== null, `not installed: ${name}`);
  const [one = 0, two = 0, port = 0] = pickPorts(3);
  const url = `http://127.0.0.1:${port}`;
  const instances: RunningService[] = [];
  let database: TestDatabase;
  let token = "";

  beforeAll(async () => {
    if (isSkipped) return;
    database = await makeDatabase();
    token = await makeToken({ database: database.url }, "gardener");
    for (const each of [one, two]) {
      instances.push(await startService({ database: database.url, port: each }));
    }
    await startProxy();
  });

  afterAll(async () => {
    for (const instance of instances) await instance[Symbol.asyncDispose]();
    await database?.drop();
  });

  /** It ends with this process. */
  async function startProxy() {
    const folder = makeServerFolder();
    const [file, output] = [join(folder, "config"), join(folder, "output")];
    // Other addresses, and nothing else changed.
    const shipped = readFileSync(join(import.meta.dir, "../../deploy", config), "utf8")
      .replace(/^( +)(listen |bind )(:?)80\b/m, `$1$2127.0.0.1:${port}`)
      .replace("127.0.0.1:8081", `127.0.0.1:${one}`)
      .replace("127.0.0.1:8082", `127.0.0.1:${two}`);
    if (name === "haproxy") {
      writeFileSync(file, shipped);
      const besides = "problem-400.http";
      copyFileSync(join(import.meta.dir, "../../deploy/haproxy", besides), join(folder, besides));
    } else {
      // Included in a block `http`, as a user would.
      const included = shipped.replace(/access_log \S+/, `access_log ${folder}/log`);
      writeFileSync(join(folder, "plantstore.conf"), included);
      const kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
      const paths = kinds.map((kind) => `${kind}_temp_path ${folder}/${kind};`).join(" ");
      writeFileSync(
        file,
        // One process, which can be killed.
        `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/log info;
         events { worker_connections 1024; }
         http { ${paths} include ${folder}/plantstore.conf; }`,
      );
    }
    const flags = name === "nginx" ? ["-c", file, "-e", output] : ["-f", file];
    const child = spawnServer([program ?? "", ...flags], output);
    await waitFor(
      async () => {
        const ready = fetch(`${url}/readyz`).catch(() => undefined);
        return (await ready)?.ok || undefined;
      },
      () => child.exitCode !== null && readFileSync(output, "utf8"),
    );
  }

  test.skipIf(isSkipped)("responses are those of the instances, but for /metrics", async () => {
    const headers = { "x-request-id": "through", "accept-encoding": "gzip" };
    const [direct, proxied] = await Promise.all(
      [one, port].map((each) => fetch(`http://127.0.0.1:${each}/`, { headers })),
    );
    for (const header of ["etag", "content-encoding", "cache-control", "vary", "x-request-id"]) {
      expect([header, proxied?.headers.get(header)]).toEqual([header, direct?.headers.get(header)]);
    }
  });

  /** The instance that responds: its request ids start with the same characters. */
  async function findInstance(authorization: string) {
    const { headers } = await fetch(`${url}/plants`, { headers: { authorization } });
    return headers.get("x-request-id")?.split("-")[0];
  }

  test.skipIf(isSkipped)(
    "all tokens of a garden lead to one instance, and gardens to both",
    async () => {
      const [first, second] = [
        await makeTokens({ database: database.url }, "gardener", 32),
        await makeTokens({ database: database.url }, "gardener", 32),
      ];
      const instancesOf = async (tokens: readonly string[], scheme: string) =>
        Promise.all(tokens.map((each) => findInstance(`${scheme} ${each}`)));
      const found = await instancesOf(first, "Bearer");
      expect(new Set(found).size).toBe(2);
      expect(await instancesOf(second, "Bearer")).toEqual(found);
      expect(await instancesOf(second, "bearer")).toEqual(found);
      expect(await instancesOf(second, "BEARER  ")).toEqual(found);
    },
  );

  test.skipIf(isSkipped)("JWTs that begin alike lead to both instances, each to one", async () => {
    const header = Buffer.from('{"alg":"ES256","kid":"2026-11"}').toString("base64url");
    const jwts = Array.from({ length: 32 }, (_, index) => {
      const claims = { iss: "https://login.example", sub: `gardener-${index}` };
      return `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.signature`;
    });
    const instancesOf = async (scheme: string) =>
      Promise.all(jwts.map((jwt) => findInstance(`${scheme} ${jwt}`)));
    const found = await instancesOf("Bearer");
    expect(new Set(found).size).toBe(2);
    expect(await instancesOf("bearer")).toEqual(found);
  });

  test.skipIf(isSkipped)("long lists are compressed, and a stream of events isn't", async () => {
    const call = makeCaller(url, token);
    const plants = Array.from({ length: 200 }, (_, index) => ({ name: `Monstera ${index}` }));
    const stored = await call("POST /plants/bulk", { body: JSON.stringify(plants) });
    expect(stored.status).toBe(200);
    for (const target of ["/plants", "/plants?limit=200"]) {
      const list = await call(`GET ${target}`, { headers: { "accept-encoding": "gzip" } });
      expect(list.headers.get("content-encoding")).toBe("gzip");
      expect(list.headers.get("vary")?.toLowerCase()).toContain("accept-encoding");
      expect(await list.json()).toEqual(plants.map((plant) => ({ ...plant, tag: "" })));
      const plain = await call(`GET ${target}`, { headers: { "accept-encoding": "identity" } });
      expect(plain.headers.get("content-encoding")).toBeNull();
    }
    const headers = { "accept-encoding": "gzip", accept: "text/event-stream" };
    const stream = await call("GET /events?after=0", { headers });
    expect(stream.headers.get("content-encoding")).toBeNull();
    await stream.body?.cancel();
  });

  test.skipIf(isSkipped)(
    "the ETag of a plant holds for If-Match, though gzip is accepted",
    async () => {
      const call = makeCaller(url, token);
      const largest = JSON.stringify({ name: "🌱".repeat(200), tag: "\u{1}".repeat(100) });
      for (const body of ['{"name":"Fern"}', largest]) {
        const gzip = { "accept-encoding": "gzip" };
        const created = await call("POST /plants", { body, headers: gzip });
        const path = created.headers.get("location");
        const etagOf = ({ headers }: Response) => headers.get("etag") ?? "";
        for (const read of [created, await call(`GET ${path}`, { headers: gzip })]) {
          const headers = { ...gzip, "if-match": etagOf(read) };
          const changed = await call(`PATCH ${path}`, { body: '{"tag":"hall"}', headers });
          expect(changed.status).toBe(200);
          const back = { ...gzip, "if-match": etagOf(changed) };
          expect((await call(`PUT ${path}`, { body, headers: back })).status).toBe(200);
        }
        expect((await call(`DELETE ${path}`)).status).toBe(204);
      }
    },
  );

  test.skipIf(isSkipped)("no write is lost or doubled while instances restart", async () => {
    const call = makeCaller(url, token);
    const names = Array.from({ length: 200 }, (_, index) => `fern-${index}`);
    // While an instance is away, and until the proxy has noticed that it's back: nginx asks it again
    // after 15 seconds.
    const patience = new Patience(200);
    const create = (plant: string) =>
      insist(async () => {
        const options = { headers: { "idempotency-key": plant }, body: `{"name":"${plant}"}` };
        const response = await call("POST /plants", options).catch(() => undefined);
        // From a proxy that lost the instance.
        const isUnknown = response === undefined || [502, 504].includes(response.status);
        return isUnknown ? new Response("", { status: 503 }) : response;
      }, patience);
    for (const [index, plant] of names.entries()) {
      if (index === 50) instances[0]?.signal("SIGTERM");
      if (index === 120) {
        expect(await instances[0]?.exited).toBe(0);
        await instances[0]?.[Symbol.asyncDispose]();
        instances[0] = await startService({ database: database.url, port: one });
        instances[1]?.signal("SIGKILL");
      }
      expect((await create(plant)).status).toBe(201);
    }
    const stored: { name: string }[] = await (await call("GET /plants?q=fern")).json();
    expect(stored.map((plant) => plant.name).toSorted()).toEqual(names.toSorted());
  });

  test.skipIf(isSkipped)("what the proxy refuses, and no instance, are problems", async () => {
    /** A problem that pages of every origin can read. */
    const problem = async (path: string, init: RequestInit) => {
      const response = await fetch(url + path, init);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        "content-type": "application/problem+json",
        "access-control-allow-origin": "*",
        ...(response.status >= 500 && { "retry-after": "1" }),
      });
      return response.json();
    };
    const texts = { title: expect.any(String), detail: expect.any(String) };
    const large = await problem("/plants", { method: "POST", body: "x".repeat(2 ** 20 + 1) });
    expect(large).toEqual({ type: "urn:plantstore:problem:too-large", status: 413, ...texts });
    const metrics = { type: "urn:plantstore:problem:forbidden", status: 403, ...texts };
    expect(await problem("/metrics", {})).toEqual(metrics);
    const invalid = { type: "urn:plantstore:problem:invalid-request", status: 400, ...texts };
    for (const rest of malformed) {
      const connection = await KeptConnection.open({ port });
      const { status, headers, body } = await connection.ask(`GET /plants HTTP/1.1\r\n${rest}`);
      connection.close();
      expect([status, headers.get("content-type")]).toEqual([400, "application/problem+json"]);
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(JSON.parse(body.toString())).toEqual(invalid);
    }
    for (const instance of instances) await instance[Symbol.asyncDispose]();
    const gone = { type: "urn:plantstore:problem:unavailable", status: unavailable, ...texts };
    expect(await problem("/plants", {})).toEqual(gone);
    expect(await problem("/plants/1", { method: "DELETE" })).toEqual(gone);
  });
});
