/** Two instances behind nginx and HAProxy, with the configurations in deploy/. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
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
  { name: "nginx", config: "nginx/plantstore.conf", connectionsMax: 256 },
  { name: "haproxy", config: "haproxy/haproxy.cfg", connectionsMax: 512 },
] as const;

describe.each(proxies)("behind $name", ({ name, config, connectionsMax }) => {
  const program = findProgram(name);
  const isSkipped = skipsUnless(program !== null, `not installed: ${name}`);
  const [one = 0, two = 0, port = 0, otherPort = 0] = pickPorts(4);
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
    await startProxy({ port, addresses: [one, two] });
  });

  afterAll(async () => {
    for (const instance of instances) await instance[Symbol.asyncDispose]();
    await database?.drop();
  });

  /** It ends with this process. */
  async function startProxy(own: { port: number; addresses: number[]; patience?: string }) {
    const folder = makeServerFolder();
    const [file, output] = [join(folder, "config"), join(folder, "output")];
    const { patience = "30s" } = own;
    // Other addresses, and nothing else changed.
    const shipped = readFileSync(join(import.meta.dir, "../../deploy", config), "utf8")
      .replace(/^( +)(listen |bind )(:?)80\b/m, `$1$2127.0.0.1:${own.port}`)
      .replace("127.0.0.1:8081", `127.0.0.1:${own.addresses[0]}`)
      .replace("127.0.0.1:8082", `127.0.0.1:${own.addresses.at(-1)}`)
      .replace(/(timeout server|proxy_read_timeout) 30s/, `$1 ${patience}`);
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
        const ready = fetch(`http://127.0.0.1:${own.port}/readyz`).catch(() => undefined);
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

  /** A problem that pages of every origin can read. */
  async function expectProblem(response: Response, status: number, code: string): Promise<void> {
    expect(response.status).toBe(status);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "application/problem+json",
      "access-control-allow-origin": "*",
      ...(code === "unavailable" && { "retry-after": "1" }),
    });
    const type = `urn:plantstore:problem:${code}`;
    const texts = { title: expect.any(String), detail: expect.any(String) };
    expect(await response.json()).toEqual({ type, status, ...texts });
  }

  test.skipIf(isSkipped)("connections of one address are limited", async () => {
    const extra = 50;
    // A body that never arrives keeps its request in progress.
    const request =
      "POST /plants HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" +
      `Authorization: Bearer ${token}\r\nContent-Length: 9\r\n\r\n{`;
    let refused = 0;
    const sockets = Array.from({ length: connectionsMax + extra }, () => {
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      // HAProxy closes the connection without a response.
      socket.once(name === "nginx" ? "data" : "close", () => refused++);
      socket.write(request);
      return socket;
    });
    await waitFor(() => refused >= extra || undefined);
    for (const socket of sockets) socket.removeAllListeners("close").destroy();
    // There is room again.
    const isOpen = async () => (await fetch(`${url}/plants`)).status === 401 || undefined;
    await waitFor(() => isOpen().catch(() => undefined));
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

  test.skipIf(isSkipped)(
    "bodies too large, lost and late responses, and no instance are problems",
    async () => {
      const large = { method: "POST", body: "x".repeat(2 ** 20 + 1) };
      await expectProblem(await fetch(`${url}/plants`, large), 413, "too-large");
      const instance = createServer(({ url: path }, response) => {
        if (path === "/plants/502") response.destroy();
        else if (path !== "/plants/504") response.end();
      }).listen(0, "127.0.0.1");
      const { port: address } = instance.address() as AddressInfo;
      await startProxy({ port: otherPort, addresses: [address], patience: "1s" });
      // Neither proxy sends a deletion twice.
      const target = `http://127.0.0.1:${otherPort}/plants`;
      for (const status of [502, 504]) {
        const response = await fetch(`${target}/${status}`, { method: "DELETE" });
        await expectProblem(response, status, "unavailable");
      }
      instance.close().closeAllConnections();
      const status = name === "nginx" ? 502 : 503;
      const response = await waitFor(async () => {
        const found = await fetch(target).catch(() => undefined);
        return found?.status === status ? found : undefined;
      });
      await expectProblem(response, status, "unavailable");
    },
  );
});
