/** Responses byte for byte, over sockets; proofs/hostile/ has what no well-behaved client sends. */
import { afterAll, describe, expect, test } from "bun:test";
import { text } from "node:stream/consumers";
import { startService } from "../../testing/running-service.ts";
import { openSockets } from "./raw-requests.ts";

const service = await startService();
afterAll(() => service[Symbol.asyncDispose]());
const { authorization, openSocket, send, ask } = openSockets(service);

// So many that their list is a stream.
const manyPlants = JSON.stringify(Array(3_000).fill({ name: "Fern" }));
await service.call("POST /plants/bulk", { body: manyPlants });

// These take seconds. The last tests wait for them.
const slowHeaders = sendHeadersInSixSeconds();
const endlessHeaders = send("GET /plants/1 HTTP/1.1", "Host: a", "X: ");

async function sendHeadersInSixSeconds(): Promise<string> {
  const socket = openSocket();
  const received = text(socket);
  socket.write("GET /plants/1 HTTP/1.1\r\nHost: a\r\nConn");
  await Bun.sleep(6_000);
  socket.write(`ection: close\r\n${authorization}\r\n\r\n`);
  return received;
}

test.each([
  "/plants",
  "/plants?limit=1",
  "/plants/1",
  "/plants/-1",
  "/plants?limit=x",
  "/tags",
  "/events",
  "/me",
  "/openapi.json",
  "/docs",
  "/",
  "/healthz",
  "/readyz",
  "/nothing",
])("HEAD %s has the headers of GET, and no body", async (path) => {
  /** The status line and the headers that describe the body, sorted. */
  const describeBody = (response: string) => {
    const [head = ""] = response.split("\r\n\r\n");
    return head
      .split("\r\n")
      .map((line) => line.replace(/^[\w-]+(?=:)/, (name) => name.toLowerCase()))
      .filter((line) => /^(?:HTTP|content-(?:type|length)|transfer-|link|etag|cache-)/.test(line))
      .toSorted();
  };

  const get = await ask(`GET ${path}`);
  const head = await ask(`HEAD ${path}`);

  expect(head).toEndWith("\r\n\r\n");
  expect(describeBody(head)).toEqual(describeBody(get));
});

test("a 304 has no body", async () => {
  const { headers } = await service.call("GET /plants/1");
  const response = await ask("GET /plants/1", `If-None-Match: ${headers.get("etag")}`);
  expect(response).toMatch(/^HTTP\/1\.1 304 [\s\S]*\r\n\r\n$/);
});

test("a 204 has no body", async () => {
  const response = await ask("OPTIONS /plants");
  expect(response).toMatch(/^HTTP\/1\.1 204 [\s\S]*\r\n\r\n$/);
});

const json = "Content-Type: application/json";
const fern = '{"name":"Fern"}';

describe("what a proxy could understand differently is a 400 that names the header:", () => {
  test("two Content-Lengths", async () => {
    const length = "Content-Length: 15";
    const response = await ask("POST /plants", json, length, length, "", fern);
    expect(response).toStartWith("HTTP/1.1 400");
    expect(response).toContain('"header":"Content-Length"');
  });

  test("a Transfer-Encoding with a comma", async () => {
    const response = await ask("POST /plants", json, "Transfer-Encoding: chunked,", "", fern);
    expect(response).toStartWith("HTTP/1.1 400");
    expect(response).toContain('"header":"Transfer-Encoding"');
  });
});

test("headers of 16 KB are read", async () => {
  expect(await ask("GET /me", `X: ${"x".repeat(16_000)}`)).toStartWith("HTTP/1.1 200");
});

test("198 lines of headers are read", async () => {
  const response = await ask("GET /me", ...Array(195).fill("X: y"));
  expect(response).toStartWith("HTTP/1.1 200");
});

test("two hosts are a 400", async () => {
  const list = ["GET /plants HTTP/1.1", "Connection: close", authorization];
  const response = await send(...list, "Host: a", "Host: a", "", "");
  expect(response).toStartWith("HTTP/1.1 400");
});

test.each(["1.1", "1.0"])("no host is a 400 in HTTP/%s", async (version) => {
  const response = await send(
    `GET /plants HTTP/${version}`,
    "Connection: close",
    authorization,
    "",
    "",
  );
  expect(response).toStartWith("HTTP/1.1 400");
});

test.each(["/healthz", "/readyz"])("%s needs no host in HTTP/1.0", async (path) => {
  const response = await send(`GET ${path} HTTP/1.0`, "", "");
  expect(response).toStartWith("HTTP/1.1 200");
});

describe("a path that a proxy's rules may not recognize:", () => {
  test.each([
    "/.\\metrics",
    "/x\\..\\metrics",
    "/./metrics",
    "/%2e/metrics",
    "/plants/../metrics?x",
    "/assets/%2e%2e\\metrics",
    "http://a/x/../metrics",
  ])("%s is a 400, because the runtime makes it /metrics", async (target) => {
    const response = await ask(`GET ${target}`);
    expect(response).toStartWith("HTTP/1.1 400");
    expect(response).toContain('"errors":[{"parameter":"path","detail":"');
  });

  test.each(["//metrics", "/\\metrics", "/%6detrics", "/metrics/", "/metrics%20", "/METRICS"])(
    "%s is a 404",
    async (target) => {
      expect(await ask(`GET ${target}`)).toStartWith("HTTP/1.1 404");
    },
  );

  test.each(["/metrics", "/", "/healthz", "/docs", "http://a/metrics", "http://a/", "http://a"])(
    "%s is none of them, and a 200",
    async (target) => {
      expect(await ask(`GET ${target}`)).toStartWith("HTTP/1.1 200");
    },
  );
});

test("headers can take six seconds", async () => {
  expect(await slowHeaders).toStartWith("HTTP/1.1 200");
});

test("a connection whose headers don't end is closed without a response", async () => {
  expect(await endlessHeaders).toBe("");
});
