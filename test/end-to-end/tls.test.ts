/** HTTPS: protocols, an expired certificate, and what commands say of it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { runInProcess } from "../command.ts";
import { runProgram, serveHere } from "./running-service.ts";

type Service = Awaited<ReturnType<typeof serveHere>>;

const certificates = join(import.meta.dir, "../certificates");

function start(certificate: "server" | "expired"): Promise<Service> {
  const pem = (name: string) => join(certificates, `${name}.pem`);
  return serveHere({ "tls-cert": pem(certificate), "tls-key": pem("server-key") });
}

/** Resolves when the handshake is done. */
function open({ port }: Service, options: object = {}): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const place = { host: "127.0.0.1", port, rejectUnauthorized: false };
  const socket = connect({ ...place, ...options }, () => resolve(socket));
  socket.on("error", reject);
  return promise;
}

describe("a service with a certificate", () => {
  let service: Service;
  beforeAll(async () => {
    service = await start("server");
  });
  afterAll(() => service[Symbol.asyncDispose]());

  test("responds over TLS 1.2 and 1.3 only, to clients that trust its authority", async () => {
    expect(service.url).toStartWith("https://127.0.0.1:");
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
    const url = service.url.replace("https", "http");
    const variables = { PLANTSTORE_URL: url, PLANTSTORE_TOKEN: service.token };
    for (const line of ["plants list", "health"]) {
      const { exitCode, errors } = await runInProcess(line.split(" "), variables);
      const advice = `Is it ${service.url}?`;
      expect([exitCode, errors]).toEqual([6, expect.stringContaining(advice)]);
    }
  });

  test("is not trusted by commands that don't know its authority, and they say so", async () => {
    const args = (host: string) => ["plants", "list", "--url", `https://${host}:${service.port}`];
    const variables = { PLANTSTORE_TOKEN: service.token };
    const unknown = await runInProcess(args("localhost"), variables);
    expect(unknown).toMatchObject({
      exitCode: 6,
      errors: expect.stringContaining("Set NODE_EXTRA"),
    });
    // Only the container's own check doesn't ask for it.
    const own = { PLANTSTORE_PORT: String(service.port), PLANTSTORE_TLS_CERT: "server.pem" };
    expect(await runInProcess("health", own)).toMatchObject({ exitCode: 0, out: "ready\n" });
    const NODE_EXTRA_CA_CERTS = join(certificates, "authority.pem");
    const trusting = (host: string) =>
      runProgram(args(host), { ...variables, NODE_EXTRA_CA_CERTS });
    expect(await trusting("localhost")).toMatchObject({ exitCode: 0, errors: "" });
    const misnamed = await trusting("127.0.0.1");
    expect(misnamed).toMatchObject({ exitCode: 6, errors: expect.stringMatching(/ name\.\n$/) });
  });
});

test("a service without a certificate says nothing of https", async () => {
  await using service = await serveHere();
  const { headers } = await fetch(`${service.url}/`);
  expect(headers.get("strict-transport-security")).toBeNull();
});
