/** HTTPS with the real program: protocols, a renewed certificate, and what commands say of it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { headerOf, KeptConnection, writeRequest } from "../../proofs/kept-connection.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { type RunningService, runProgram, startService, waitFor } from "./running-service.ts";

const certificates = join(import.meta.dir, "../certificates");
const folder = makeTemporaryFolder();
afterAll(() => folder[Symbol.dispose]());

const files = { cert: join(folder.path, "cert.pem"), key: join(folder.path, "key.pem") };
const flags = ["--tls-cert", files.cert, "--tls-key", files.key];

/** Puts a pair into the place that the service reads. */
function install(name: "server" | "renewed" | "expired"): void {
  copyFileSync(join(certificates, `${name}.pem`), files.cert);
  const pair = name === "expired" ? "server" : name;
  copyFileSync(join(certificates, `${pair}-key.pem`), files.key);
}

async function start(threads: number): Promise<RunningService> {
  install("server");
  return startService({ args: ["--threads", String(threads), ...flags] });
}

/** Resolves when the handshake is done. */
function open({ port }: RunningService, options: object = {}): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const place = { host: "127.0.0.1", port, rejectUnauthorized: false };
  const socket = connect({ ...place, ...options }, () => resolve(socket));
  socket.on("error", reject);
  return promise;
}

/** Whose certificate is shown. */
async function shownBy(service: RunningService): Promise<string> {
  const socket = await waitFor(() =>
    open(service).catch((error) => {
      // As a client that tries again when a socket closed before its connection was accepted.
      if (error.code === "ECONNRESET") return undefined;
      throw error;
    }),
  );
  const shown = socket.getPeerCertificate().fingerprint256;
  socket.destroy();
  return shown;
}

const logged = (service: RunningService, event: string) =>
  waitFor(() => (service.output().out.includes(`"${event}"`) ? true : undefined));

/** Every new connection shows the new one, whichever thread it falls to. */
async function waitForRenewal(service: RunningService, old: string): Promise<void> {
  await waitFor(async () => {
    const shown = await Promise.all(Array.from({ length: 16 }, () => shownBy(service)));
    return shown.includes(old) ? undefined : true;
  });
}

describe("a service with a certificate", () => {
  let service: RunningService;
  beforeAll(async () => {
    service = await start(1);
  });
  afterAll(() => service[Symbol.asyncDispose]());

  test("responds over TLS 1.2 and 1.3 only, to clients that trust its authority", async () => {
    expect(service.url).toStartWith("https://127.0.0.1:");
    expect(service.output().errors).toContain(`curl -i "${service.url}/plants"`);
    for (const version of ["TLSv1.2", "TLSv1.3"]) {
      const socket = await open(service, { minVersion: version, maxVersion: version });
      expect(socket.getProtocol()).toBe(version);
      socket.destroy();
    }
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1" };
    expect(await open(service, old).catch((error) => error)).toBeInstanceOf(Error);
    const plain = await fetch(`http://127.0.0.1:${service.port}/healthz`).catch((error) => error);
    expect(plain).toBeInstanceOf(Error);
    const ca = await Bun.file(join(certificates, "authority.pem")).text();
    const url = service.url.replace("127.0.0.1", "localhost");
    expect((await fetch(`${url}/healthz`, { tls: { ca } })).status).toBe(200);
  });

  test("offers only AEAD suites over TLS 1.2", async () => {
    const offer = (ciphers: string) => open(service, { maxVersion: "TLSv1.2", ciphers });
    for (const suite of ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"]) {
      const socket = await offer(`ECDHE-ECDSA-${suite}`);
      expect(socket.getCipher().name).toBe(`ECDHE-ECDSA-${suite}`);
      socket.destroy();
    }
    for (const suite of ["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA"]) {
      expect(await offer(suite).catch((error) => error)).toBeInstanceOf(Error);
    }
  });

  test("tells browsers to stay with https, and commands that are called with http name it", async () => {
    const { headers } = await fetch(`${service.url}/`, { tls: { rejectUnauthorized: false } });
    expect(headers.get("strict-transport-security")).toBe("max-age=31536000");
    await expectScheme(service, "http", "https");
  });

  test("is not trusted by commands that don't know its authority, and they say so", async () => {
    const PLANTSTORE_TOKEN = service.token;
    const NODE_EXTRA_CA_CERTS = join(certificates, "authority.pem");
    const list = async (host: string, variables: Record<string, string>) => {
      const args = ["plants", "list", "--url", `https://${host}:${service.port}`];
      const { exitCode, errors } = await runProgram(args, { PLANTSTORE_TOKEN, ...variables });
      return `${exitCode} ${errors}`;
    };
    expect(await list("localhost", {})).toMatch(
      /^6 .* certificate is not trusted\. Set NODE_EXTRA/,
    );
    expect(await list("localhost", { NODE_EXTRA_CA_CERTS })).toBe("0 ");
    expect(await list("127.0.0.1", { NODE_EXTRA_CA_CERTS })).toMatch(/^6 .* for another name/);
  });
});

test("a service without a certificate says nothing of https, and commands called with it name http", async () => {
  await using service = await startService();
  const { headers } = await fetch(`${service.url}/`);
  expect(headers.get("strict-transport-security")).toBeNull();
  await expectScheme(service, "https", "http");
});

async function expectScheme({ port, token }: RunningService, from: string, to: string) {
  const variables = { PLANTSTORE_URL: `${from}://127.0.0.1:${port}`, PLANTSTORE_TOKEN: token };
  for (const line of ["plants list", "health", "check --only health"]) {
    const { exitCode, errors } = await runProgram(line.split(" "), variables);
    const advice = `Is it ${to}://127.0.0.1:${port}?`;
    expect([exitCode, errors]).toEqual([6, expect.stringContaining(advice)]);
  }
}

test("a service says in the log that its certificate has expired", async () => {
  install("expired");
  await using service = await startService({ args: ["--threads", "1", ...flags] });
  await logged(service, "certificate has expired");
  expect(service.output().out).toContain('"expires":"2021-01-01T00:00:00.000Z"');
});

describe("on SIGHUP, three threads", () => {
  test("show the new certificate, while what is under way is finished", async () => {
    await using service = await start(3);
    const old = await shownBy(service);
    const { port, token } = service;
    const [busy, idle] = await Promise.all([
      KeptConnection.open({ port, isSecure: true }),
      KeptConnection.open({ port, isSecure: true }),
    ]);
    // A request that has begun: the end of its body is still to come.
    const create = writeRequest("POST /plants", { token, body: '{"name":"Fern"}' });
    busy.sendPart(create.slice(0, -5));
    const health = writeRequest("GET /healthz", { token });
    expect((await idle.ask(health)).status).toBe(200);

    install("renewed");
    service.signal("SIGHUP");
    await logged(service, "certificate reloaded");
    expect(service.output().out).toContain('"expires":"2126-10-22T05:16:41.000Z"');
    // An open connection still gets its response, and is then closed.
    const last = await idle.ask(health);
    expect([last.status, headerOf(last, "connection")]).toEqual([200, "close"]);

    await waitForRenewal(service, old);
    await Bun.sleep(1_500);
    expect((await busy.ask(create.slice(-5))).status).toBe(201);
    service.signal("SIGTERM");
    expect(await service.exited).toBe(0);
  });

  test("keep the old certificate when the new one cannot be used, and say so", async () => {
    await using service = await start(3);
    const old = await shownBy(service);
    copyFileSync(join(certificates, "renewed.pem"), files.cert);
    service.signal("SIGHUP");
    await logged(service, "certificate reload failed");
    expect(service.output().out).toContain("is not the key of");
    for (let count = 0; count < 8; count++) expect(await shownBy(service)).toBe(old);
    install("renewed");
    service.signal("SIGHUP");
    await waitForRenewal(service, old);
  });
});
