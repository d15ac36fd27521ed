/** Two instances behind nginx and HAProxy, with the configurations in deploy/. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram, makeServerFolder, spawnServer } from "../../proofs/system-servers.ts";
import {
  insist,
  makeCaller,
  makeToken,
  type RunningService,
  startService,
  waitFor,
} from "../end-to-end/running-service.ts";
import { makeDatabase, type TestDatabase } from "../postgres-server.ts";
import { pickPorts } from "../processes.ts";
import { skipsUnless } from "../skipping.ts";

setDefaultTimeout(120_000);

const proxies = [
  { name: "nginx", config: "nginx/plantstore.conf", unavailable: 502 },
  { name: "haproxy", config: "haproxy/haproxy.cfg", unavailable: 503 },
] as const;

describe.each(proxies)("behind $name", ({ name, config, unavailable }) => {
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
    if (name === "haproxy") writeFileSync(file, shipped);
    else {
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
    expect((await fetch(`${url}/metrics`)).status).toBe(403);
  });

  test.skipIf(isSkipped)("no write is lost or doubled while instances restart", async () => {
    const call = makeCaller(url, token);
    const names = Array.from({ length: 200 }, (_, index) => `fern-${index}`);
    const create = (plant: string) =>
      insist(async () => {
        const options = { headers: { "idempotency-key": plant }, body: `{"name":"${plant}"}` };
        const response = await call("POST /plants", options).catch(() => undefined);
        // From a proxy that lost the instance.
        const isUnknown = response === undefined || [502, 504].includes(response.status);
        return isUnknown ? new Response("", { status: 503 }) : response;
      });
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
    const stored: { name: string }[] = await (await call("GET /plants")).json();
    expect(stored.map((plant) => plant.name).toSorted()).toEqual(names.toSorted());
  });

  test.skipIf(isSkipped)("bodies too large, and no instance, are problems", async () => {
    /** A problem that pages of every origin can read. */
    const problem = async (path: string, init: RequestInit) => {
      const response = await fetch(url + path, init);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        "content-type": "application/problem+json",
        "access-control-allow-origin": "*",
        ...(response.status !== 413 && { "retry-after": "1" }),
      });
      return response.json();
    };
    const texts = { title: expect.any(String), detail: expect.any(String) };
    const large = await problem("/plants", { method: "POST", body: "x".repeat(2 ** 20 + 1) });
    expect(large).toEqual({ type: "urn:plantstore:problem:too-large", status: 413, ...texts });
    for (const instance of instances) await instance[Symbol.asyncDispose]();
    const gone = { type: "urn:plantstore:problem:unavailable", status: unavailable, ...texts };
    expect(await problem("/plants", {})).toEqual(gone);
    expect(await problem("/plants/1", { method: "DELETE" })).toEqual(gone);
  });
});
