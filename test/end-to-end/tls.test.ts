/** HTTPS: protocols and cipher suites, and what browsers and commands do about certificates. */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { runInProcess } from "../../testing/command.ts";
import { runProgram, serveHere } from "../../testing/running-service.ts";

const certificates = join(import.meta.dir, "../certificates");
const service = await serveHere({
  "tls-cert": join(certificates, "server.pem"),
  "tls-key": join(certificates, "server-key.pem"),
});
afterAll(() => service[Symbol.asyncDispose]());

/** Resolves when the handshake is done; fails if the service refuses it. */
function openConnection(options: ConnectionOptions): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const socket = connect(
    { host: "127.0.0.1", port: service.port, rejectUnauthorized: false, ...options },
    () => resolve(socket),
  );
  socket.on("error", reject);
  return promise;
}

describe("a client", () => {
  test("may connect with TLS 1.3", async () => {
    const socket = await openConnection({ minVersion: "TLSv1.3" });

    expect(socket.getProtocol()).toBe("TLSv1.3");
    socket.destroy();
  });

  test("may connect with TLS 1.2 and an authenticated cipher suite", async () => {
    const socket = await openConnection({
      maxVersion: "TLSv1.2",
      ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256",
    });

    expect(socket.getProtocol()).toBe("TLSv1.2");
    socket.destroy();
  });

  test("can't connect with TLS 1.2 and an older cipher suite", async () => {
    const error = await openConnection({
      maxVersion: "TLSv1.2",
      ciphers: "ECDHE-ECDSA-AES128-SHA",
    }).catch((reason) => reason);

    expect(error).toBeInstanceOf(Error);
  });

  test("can't connect with TLS 1.1 or 1.0", async () => {
    const error = await openConnection({
      minVersion: "TLSv1",
      maxVersion: "TLSv1.1",
    }).catch((reason) => reason);

    expect(error).toBeInstanceOf(Error);
  });
});

describe("browsers", () => {
  test("are told to stay with HTTPS for a year", async () => {
    const response = await fetch(`${service.url}/`, { tls: { rejectUnauthorized: false } });

    expect(response.headers.get("strict-transport-security")).toBe("max-age=31536000");
  });

  test("aren't told to use HTTPS by a service without it", async () => {
    await using plain = await serveHere();

    const response = await plain.call("GET /");

    expect(response.headers.has("strict-transport-security")).toBe(false);
  });
});

describe("a command", () => {
  const variables = { PLANTSTORE_TOKEN: service.token };
  /** Bun reads this variable when a process starts, so it needs a process of its own. */
  const trusting = { ...variables, NODE_EXTRA_CA_CERTS: join(certificates, "authority.pem") };
  const listPlants = (host: string) => [
    "plants",
    "list",
    "--url",
    `https://${host}:${service.port}`,
  ];

  test("doesn't trust an unknown authority, and says how to add it", async () => {
    const { exitCode, errors } = await runInProcess(listPlants("localhost"), variables);

    expect(exitCode).toBe(6);
    expect(errors).toContain("NODE_EXTRA");
  });

  test("trusts an authority that it is given", async () => {
    const { exitCode, errors } = await runProgram(listPlants("localhost"), trusting);

    expect(exitCode).toBe(0);
    expect(errors).toBe("");
  });

  test("doesn't trust a certificate for another name, and says so", async () => {
    const { exitCode, errors } = await runProgram(listPlants("127.0.0.1"), trusting);

    expect(exitCode).toBe(6);
    expect(errors).toMatch(/ name\.\n$/);
  });
});

test("the health check of a container needs no authority", async () => {
  const { exitCode, out } = await runInProcess("health", {
    PLANTSTORE_HOST: "0.0.0.0",
    PLANTSTORE_PORT: String(service.port),
    PLANTSTORE_TLS_CERT: "server.pem",
  });

  expect(exitCode).toBe(0);
  expect(out).toBe("ready\n");
});
