/** HTTPS: protocols and suites, and what browsers and commands are told. */
import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { runInProcess } from "../../testing/command.ts";
import { runProgram, serveHere } from "../../testing/running-service.ts";

const pem = (name: string) => join(import.meta.dir, "../certificates", `${name}.pem`);
const service = await serveHere({ "tls-cert": pem("server"), "tls-key": pem("server-key") });
afterAll(() => service[Symbol.asyncDispose]());

/** Resolves when the handshake is done. */
function open(options: object): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>();
  const place = { host: "127.0.0.1", port: service.port, rejectUnauthorized: false };
  const socket = connect({ ...place, ...options }, () => resolve(socket));
  socket.on("error", reject);
  return promise;
}

test.each([
  [true, { minVersion: "TLSv1.3" }],
  [true, { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" }],
  [false, { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-SHA" }],
  [false, { minVersion: "TLSv1", maxVersion: "TLSv1.1" }],
])("it is %p that a client may connect with %p", async (expected, options) => {
  const socket = await open(options).catch(() => undefined);
  expect(socket !== undefined).toBe(expected);
  socket?.destroy();
});

test("browsers are told to stay with https, and those of a service without it aren't", async () => {
  const { headers } = await fetch(`${service.url}/`, { tls: { rejectUnauthorized: false } });
  expect(headers.get("strict-transport-security")).toBe("max-age=31536000");
  await using plain = await serveHere();
  expect((await plain.call("GET /")).headers.has("strict-transport-security")).toBe(false);
});

test("commands that don't know the certificate's authority don't trust it, and say so", async () => {
  const args = (host: string) => ["plants", "list", "--url", `https://${host}:${service.port}`];
  const variables = { PLANTSTORE_TOKEN: service.token };
  const unknown = await runInProcess(args("localhost"), variables);
  expect([unknown.exitCode, unknown.errors]).toEqual([6, expect.stringContaining("NODE_EXTRA")]);
  // Only the container's own check doesn't ask for it.
  const own = {
    PLANTSTORE_HOST: "0.0.0.0",
    PLANTSTORE_PORT: String(service.port),
    PLANTSTORE_TLS_CERT: "server.pem",
  };
  expect(await runInProcess("health", own)).toMatchObject({ exitCode: 0, out: "ready\n" });
  const trusting = { ...variables, NODE_EXTRA_CA_CERTS: pem("authority") };
  const trusted = await runProgram(args("localhost"), trusting);
  expect(trusted).toMatchObject({ exitCode: 0, errors: "" });
  const misnamed = await runProgram(args("127.0.0.1"), trusting);
  expect([misnamed.exitCode, misnamed.errors]).toEqual([6, expect.stringMatching(/ name\.\n$/)]);
});
