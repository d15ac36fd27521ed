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

/** Requests that a proxy itself refuses. The lines end as on the wire. */
const malformedRequests = [
  { reason: "a length that is no number", headers: ["Host: a", "Content-Length: many"] },
  { reason: "a host with a space", headers: ["Host: a b"] },
  { reason: "a header of 20,000 bytes", headers: ["Host: a", `X: ${"x".repeat(20_000)}`] },
];
/** What either proxy sends if no instance is there. */
const proxies = [
  { name: "nginx", statusWithoutInstances: 502 },
  { name: "haproxy", statusWithoutInstances: 503 },
] as const;
const deployed = join(import.meta.dir, "../../deploy");

/** Where a proxy listens, and the instances behind it. */
interface Ports {
  readonly proxy: number;
  readonly one: number;
  readonly two: number;
}

/** The configuration that we ship, with other addresses and nothing else changed. */
function readConfiguration(path: string, ports: Ports): string {
  return readFileSync(join(deployed, path), "utf8")
    .replace(/^( +)(listen |bind )(:?)80\b/m, `$1$2127.0.0.1:${ports.proxy}`)
    .replace("127.0.0.1:8081", `127.0.0.1:${ports.one}`)
    .replace("127.0.0.1:8082", `127.0.0.1:${ports.two}`);
}

/** Writes what HAProxy needs into a folder, and returns the command that runs it. */
function prepareHaproxy(program: string, folder: string, ports: Ports): string[] {
  const file = join(folder, "config");
  writeFileSync(file, readConfiguration("haproxy/haproxy.cfg", ports));
  copyFileSync(join(deployed, "haproxy/problem-400.http"), join(folder, "problem-400.http"));
  return [program, "-f", file];
}

/** The same for nginx. */
function prepareNginx(program: string, folder: string, ports: Ports): string[] {
  const shipped = readConfiguration("nginx/plantstore.conf", ports);
  const included = shipped.replace(/access_log \S+/, `access_log ${folder}/log`);
  writeFileSync(join(folder, "plantstore.conf"), included);
  // Included in a block `http`, as a user would. One process, which can be killed.
  const file = join(folder, "config");
  writeFileSync(
    file,
    `daemon off;
     master_process off;
     pid ${folder}/pid;
     error_log ${folder}/log info;
     events { worker_connections 1024; }
     http {
       client_body_temp_path ${folder}/client_body;
       proxy_temp_path ${folder}/proxy;
       fastcgi_temp_path ${folder}/fastcgi;
       uwsgi_temp_path ${folder}/uwsgi;
       scgi_temp_path ${folder}/scgi;
       include ${folder}/plantstore.conf;
     }`,
  );
  return [program, "-c", file, "-e", join(folder, "output")];
}

describe.each(proxies)("behind $name", ({ name, statusWithoutInstances }) => {
  const program = findProgram(name);
  const isSkipped = skipsUnless(program !== null, `not installed: ${name}`);
  const [one = 0, two = 0, proxy = 0] = pickPorts(3);
  const ports = { one, two, proxy };
  const url = `http://127.0.0.1:${ports.proxy}`;
  const instances: RunningService[] = [];
  let database: TestDatabase;
  let token = "";

  beforeAll(async () => {
    if (isSkipped) return;
    database = await makeDatabase();
    token = await makeToken({ database: database.url }, "gardener");
    for (const port of [ports.one, ports.two]) {
      instances.push(await startService({ database: database.url, port }));
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
    const prepare = name === "nginx" ? prepareNginx : prepareHaproxy;
    const output = join(folder, "output");
    const child = spawnServer(prepare(program ?? "", folder, ports), output);
    await waitFor(
      async () => {
        const response = await fetch(`${url}/readyz`).catch(() => undefined);
        return response?.ok || undefined;
      },
      () => child.exitCode !== null && readFileSync(output, "utf8"),
    );
  }

  test
    .skipIf(isSkipped)
    .each(["etag", "content-encoding", "cache-control", "vary", "x-request-id"])(
    "responses have the header %s of the instance",
    async (header) => {
      const headers = { "x-request-id": "through", "accept-encoding": "gzip" };
      const direct = await fetch(`http://127.0.0.1:${ports.one}/`, { headers });

      const proxied = await fetch(`${url}/`, { headers });

      expect(direct.headers.get(header)).not.toBeNull();
      expect(proxied.headers.get(header)).toBe(direct.headers.get(header));
    },
  );

  describe("the instance that a request goes to", () => {
    /** Its request ids start with the same characters. */
    async function findInstance(authorization: string) {
      const { headers } = await fetch(`${url}/plants`, { headers: { authorization } });
      return headers.get("x-request-id")?.split("-")[0];
    }

    /** The instance of each token, if it's sent with this scheme. */
    function findInstances(scheme: string, tokens: readonly string[]) {
      return Promise.all(tokens.map((token) => findInstance(`${scheme} ${token}`)));
    }

    test.skipIf(isSkipped)("is the same for all tokens of a garden", async () => {
      const first = await makeTokens({ database: database.url }, "gardener", 32);
      const second = await makeTokens({ database: database.url }, "gardener", 32);

      const found = await findInstances("Bearer", first);

      expect(new Set(found).size).toBe(2);
      expect(await findInstances("Bearer", second)).toEqual(found);
    });

    test.skipIf(isSkipped)("is the same however Bearer is written", async () => {
      const tokens = await makeTokens({ database: database.url }, "gardener", 32);

      const found = await findInstances("Bearer", tokens);

      expect(new Set(found).size).toBe(2);
      expect(await findInstances("bearer", tokens)).toEqual(found);
      expect(await findInstances("BEARER  ", tokens)).toEqual(found);
    });

    test.skipIf(isSkipped)(
      "is the same for each JWT, but not for all that begin alike",
      async () => {
        const header = Buffer.from('{"alg":"ES256","kid":"2026-11"}').toString("base64url");
        const jwts = Array.from({ length: 32 }, (_, index) => {
          const claims = { iss: "https://login.example", sub: `gardener-${index}` };
          return `${header}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.signature`;
        });

        const found = await findInstances("Bearer", jwts);

        expect(new Set(found).size).toBe(2);
        expect(await findInstances("bearer", jwts)).toEqual(found);
      },
    );
  });

  describe("compression", () => {
    const plants = Array.from({ length: 200 }, (_, index) => ({ name: `Monstera ${index}` }));
    let call: ReturnType<typeof makeCaller>;

    beforeAll(async () => {
      if (isSkipped) return;
      const [listToken] = await makeTokens({ database: database.url }, "compressed", 1);
      call = makeCaller(url, listToken);
      const stored = await call("POST /plants/bulk", { body: JSON.stringify(plants) });
      expect(stored.status).toBe(200);
    });

    test.skipIf(isSkipped).each(["/plants", "/plants?limit=200"])(
      "makes the list %s smaller if the client accepts that",
      async (target) => {
        const list = await call(`GET ${target}`, { headers: { "accept-encoding": "gzip" } });

        expect(list.headers.get("content-encoding")).toBe("gzip");
        expect(list.headers.get("vary")?.toLowerCase()).toContain("accept-encoding");
        expect(await list.json()).toEqual(plants.map(({ name }) => ({ name, tag: "" })));
      },
    );

    test.skipIf(isSkipped).each(["/plants", "/plants?limit=200"])(
      "leaves the list %s alone if the client accepts none",
      async (target) => {
        const list = await call(`GET ${target}`, { headers: { "accept-encoding": "identity" } });

        expect(list.headers.get("content-encoding")).toBeNull();
      },
    );

    test.skipIf(isSkipped)("leaves streams of events alone", async () => {
      const headers = { "accept-encoding": "gzip", accept: "text/event-stream" };
      const stream = await call("GET /events?after=0", { headers });

      expect(stream.headers.get("content-type")).toStartWith("text/event-stream");
      expect(stream.headers.get("content-encoding")).toBeNull();
      await stream.body?.cancel();
    });
  });

  test.skipIf(isSkipped).each([
    { size: "a small plant", body: '{"name":"Fern"}' },
    {
      size: "the largest plant",
      body: JSON.stringify({ name: "🌱".repeat(200), tag: "\u{1}".repeat(100) }),
    },
  ])("the ETag of $size holds for If-Match, though gzip is accepted", async ({ body }) => {
    const call = makeCaller(url, token);
    const acceptEncoding = { "accept-encoding": "gzip" };
    const created = await call("POST /plants", { body, headers: acceptEncoding });
    const path = created.headers.get("location");
    const read = await call(`GET ${path}`, { headers: acceptEncoding });

    for (const { headers } of [created, read]) {
      const patched = await call(`PATCH ${path}`, {
        body: '{"tag":"hall"}',
        headers: { ...acceptEncoding, "if-match": headers.get("etag") ?? "" },
      });
      expect(patched.status).toBe(200);
      const put = await call(`PUT ${path}`, {
        body,
        headers: { ...acceptEncoding, "if-match": patched.headers.get("etag") ?? "" },
      });
      expect(put.status).toBe(200);
    }

    expect((await call(`DELETE ${path}`)).status).toBe(204);
  });

  test.skipIf(isSkipped)("no write is lost or doubled while instances restart", async () => {
    const call = makeCaller(url, token);
    const names = Array.from({ length: 200 }, (_, index) => `fern-${index}`);
    // While an instance is away, and until the proxy has noticed that it's back: nginx asks it again
    // after 15 seconds.
    const patience = new Patience(200);
    /** Tries again with the same key while the outcome is unknown. */
    const create = (plant: string) =>
      insist(async () => {
        const response = await call("POST /plants", {
          headers: { "idempotency-key": plant },
          body: `{"name":"${plant}"}`,
        }).catch(() => undefined);
        // From a proxy that lost the instance.
        const isUnknown = response === undefined || [502, 504].includes(response.status);
        return isUnknown ? new Response("", { status: 503 }) : response;
      }, patience);

    for (const [index, plant] of names.entries()) {
      if (index === 50) instances[0]?.signal("SIGTERM");
      if (index === 120) {
        expect(await instances[0]?.exited).toBe(0);
        await instances[0]?.[Symbol.asyncDispose]();
        instances[0] = await startService({ database: database.url, port: ports.one });
        instances[1]?.signal("SIGKILL");
      }
      expect((await create(plant)).status).toBe(201);
    }

    const stored: { name: string }[] = await (await call("GET /plants?q=fern")).json();
    expect(stored.map((plant) => plant.name).toSorted()).toEqual(names.toSorted());
  });

  describe("the proxy itself refuses", () => {
    test.skipIf(isSkipped)("a body over the limit, with the service's problem", async () => {
      const body = "x".repeat(2 ** 20 + 1);
      const response = await fetch(`${url}/plants`, { method: "POST", body });

      expect(response.status).toBe(413);
      expect(response.headers.get("content-type")).toBe("application/problem+json");
      expect(response.headers.get("access-control-allow-origin")).toBe("*");
      expect(await response.json()).toEqual({
        type: "urn:plantstore:problem:too-large",
        status: 413,
        title: expect.any(String),
        detail: expect.any(String),
      });
    });

    // Before 3.2.3, HAProxy sends a page of its own.
    test.skipIf(isSkipped || name === "haproxy")(
      "a query over its limit, with the service's problem",
      async () => {
        const response = await fetch(`${url}/plants?q=${"x".repeat(20_000)}`);

        expect(response.status).toBe(400);
        expect(response.headers.get("content-type")).toBe("application/problem+json");
        expect(await response.json()).toMatchObject({
          type: "urn:plantstore:problem:invalid-request",
        });
      },
    );

    test.skipIf(isSkipped)("/metrics, with the service's problem", async () => {
      const response = await fetch(`${url}/metrics`);

      expect(response.status).toBe(403);
      expect(response.headers.get("content-type")).toBe("application/problem+json");
      expect(response.headers.get("access-control-allow-origin")).toBe("*");
      expect(await response.json()).toEqual({
        type: "urn:plantstore:problem:forbidden",
        status: 403,
        title: expect.any(String),
        detail: expect.any(String),
      });
    });

    // HAProxy before 3.2.3 has a page of its own for them, whatever the configuration says.
    test.skipIf(isSkipped || name === "haproxy").each(malformedRequests)(
      "a request with $reason, with the service's problem",
      async ({ headers: lines }) => {
        const connection = await KeptConnection.open({ port: ports.proxy });
        const { status, headers, body } = await connection.ask(
          `GET /plants HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`,
        );
        connection.close();

        expect(status).toBe(400);
        expect(headers.get("content-type")).toBe("application/problem+json");
        expect(headers.get("access-control-allow-origin")).toBe("*");
        expect(JSON.parse(body.toString())).toEqual({
          type: "urn:plantstore:problem:invalid-request",
          status: 400,
          title: expect.any(String),
          detail: expect.any(String),
        });
      },
    );
  });

  describe("without instances", () => {
    beforeAll(async () => {
      for (const instance of instances) await instance[Symbol.asyncDispose]();
    });

    test.skipIf(isSkipped).each([
      { method: "GET", path: "/plants" },
      { method: "DELETE", path: "/plants/1" },
    ])("$method $path gets a problem that says when to try again", async ({ method, path }) => {
      const response = await fetch(url + path, { method });

      expect(response.status).toBe(statusWithoutInstances);
      expect(response.headers.get("content-type")).toBe("application/problem+json");
      expect(response.headers.get("access-control-allow-origin")).toBe("*");
      expect(response.headers.get("retry-after")).toBe("1");
      expect(await response.json()).toEqual({
        type: "urn:plantstore:problem:unavailable",
        status: statusWithoutInstances,
        title: expect.any(String),
        detail: expect.any(String),
      });
    });
  });
});
