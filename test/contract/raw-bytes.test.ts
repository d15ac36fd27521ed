/** Responses byte for byte, over sockets; proofs/hostile/ has what no well-behaved client sends. */
import { afterAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { startService } from "../end-to-end/running-service.ts";
import { skipsUnless } from "../skipping.ts";

const service = await startService();
afterAll(() => service[Symbol.asyncDispose]());
const manyPlants = JSON.stringify(Array(3_000).fill({ name: "Fern" }));
await service.call("POST /plants/bulk", { body: manyPlants });

/** Sends text as it is, and takes what comes back until the service closes the connection. */
function send(...lines: string[]): Promise<string> {
  const socket = connect(service.port, "127.0.0.1");
  socket.write(lines.join("\r\n"));
  return text(socket);
}

const authorization = `Authorization: Bearer ${service.token}`;
const common = ["Connection: close", authorization];
const ask = (line: string, ...headers: string[]) =>
  send(`${line} HTTP/1.1`, "Host: a", ...common, ...headers, "", "");

const json = "Content-Type: application/json";
/** Sent first, because it takes 15 seconds. */
const late = send(
  ...["POST /plants HTTP/1.1", "Host: a", authorization, json, "Content-Length: 15", "", "{"],
);

test.each([
  ...["/plants", "/plants?limit=1", "/plants/1", "/plants/-1", "/plants?limit=x", "/tags"],
  ...["/events", "/me", "/openapi.json", "/docs", "/", "/healthz", "/readyz", "/nothing"],
])("HEAD %s is as GET, without a body", async (path) => {
  const headOf = (response: string) =>
    (response.split("\r\n\r\n")[0] ?? "")
      .split("\r\n")
      .map((line) => line.replace(/^[\w-]+(?=:)/, (name) => name.toLowerCase()))
      .filter((line) => /^(?:HTTP|content-(?:type|length)|transfer-|link|etag|cache-)/.test(line))
      .toSorted();
  const [get, head] = [await ask(`GET ${path}`), await ask(`HEAD ${path}`)];
  expect(head).toEndWith("\r\n\r\n");
  expect(headOf(head)).toEqual(headOf(get));
});

test("204 and 304 have no body", async () => {
  const etag = (await service.call("GET /plants/1")).headers.get("etag");
  const notModified = await ask("GET /plants/1", `If-None-Match: ${etag}`);
  expect(notModified).toMatch(/^HTTP\/1\.1 304 [\s\S]*\r\n\r\n$/);
  expect(await ask("OPTIONS /plants")).toMatch(/^HTTP\/1\.1 204 [\s\S]*\r\n\r\n$/);
});

test("a body may come in chunks, and over 64 KiB is 413 before all of it has arrived", async () => {
  const post = (...lines: string[]) =>
    send("POST /plants HTTP/1.1", "Host: a", ...common, json, ...lines);
  const chunked = "Transfer-Encoding: chunked";
  const chunks = ["8", '{"name":', "6", '"Fern"', "1", "}", "0", "", ""];
  expect(await post(chunked, "", ...chunks)).toStartWith("HTTP/1.1 201");
  expect(await post(chunked, "", "10001", " ".repeat(0x10001), "")).toStartWith("HTTP/1.1 413");
  expect(await post("Content-Length: 2000000", "", "{")).toStartWith("HTTP/1.1 413");
});

test.each(["1.1", "1.0"])(
  "a client of HTTP/%s that expects a 100 in another spelling gets a 417 before it sends its body",
  async (version) => {
    const response = await send(
      ...[`POST /plants HTTP/${version}`, "Host: a", authorization, "Expect: 100-Continue"],
      ...["Content-Type: application/json", "Content-Length: 15", "", ""],
    );
    expect(response).toStartWith("HTTP/1.1 417");
    expect(response).toContain('"type":"urn:plantstore:problem:expectation-failed"');
  },
);

test.each([
  ["with a valid token", authorization, 417],
  ["without a token", "Accept: */*", 401],
])(
  "a client %s that isn't told to send its body can't have its next request taken for the body",
  async (_, credential, status) => {
    const next = ["DELETE /plants/1 HTTP/1.1", "Host: a", authorization, "", ""].join("\r\n");
    const response = await send(
      ...["POST /plants HTTP/1.1", "Host: a", credential, "Expect: 100-Continue"],
      ...["Content-Type: application/json", `Content-Length: ${next.length}`, "", next],
    );
    expect(response).toStartWith(`HTTP/1.1 ${status}`);
    expect(response.toLowerCase()).toContain("\r\nconnection: close\r\n");
    expect(response.match(/HTTP\/1\.1 \d+/g)).toHaveLength(1);
  },
);

const chunkedTo = (target: string, ...headers: string[]) =>
  [`${target} HTTP/1.1`, "Host: a", "Transfer-Encoding: chunked", ...headers, "", ""].join("\r\n");

describe("a client that is still sending chunks sees the refusal, and its next response", () => {
  const wrongToken = "Authorization: Bearer wrong";
  const long = [100_000, 3_000_000];
  test.each([
    [401, chunkedTo("POST /plants", wrongToken, json), [100, ...long]],
    [404, chunkedTo("POST /nothing", authorization, json), [100, ...long]],
    [405, chunkedTo("PUT /plants", authorization, json), [100, ...long]],
    [413, chunkedTo("POST /plants", authorization, json), long],
    [415, chunkedTo("POST /plants", authorization, "Content-Type: text/plain"), [100, ...long]],
  ])("of a %d", async (status, head, sizes) => {
    for (const size of sizes) {
      const socket = connect(service.port, "127.0.0.1");
      const received = text(socket);
      socket.write(head);
      const piece = " ".repeat(size / 20);
      for (let pieces = 0; pieces < 20; pieces++) {
        socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
        await Bun.sleep(5);
      }
      socket.write("0\r\n\r\n");
      socket.write("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      const responses = await received.catch((error) => `${error}`);
      const statuses = [...responses.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, each]) => Number(each));
      expect({ size, statuses }).toEqual({ size, statuses: [status, 200] });
    }
  });

  const python = ["/usr/bin/python3", "python3"].find(
    (each) => Bun.which(each) && Bun.spawnSync([each, "-c", "import requests"]).success,
  );
  test.skipIf(skipsUnless(python !== undefined, "not installed: requests for Python"))(
    "if it is Python's requests",
    async () => {
      const script = `
import sys, time, requests
def chunks():
    for _ in range(20):
        yield b" " * 5000
        time.sleep(0.005)
response = requests.post(sys.argv[1], data=chunks(), headers={"Authorization": "Bearer wrong"})
print(response.status_code, response.json()["title"])`;
      const { stdout } = Bun.spawnSync([python ?? "", "-c", script, `${service.url}/plants`]);
      expect(`${stdout}`).toBe("401 A valid token is needed\n");
    },
  );
});

test("two hosts or none are 400, but a probe by HTTP/1.0 needs none", async () => {
  const list = ["GET /plants HTTP/1.1", ...common];
  expect(await send(...list, "Host: a", "Host: a", "", "")).toStartWith("HTTP/1.1 400");
  expect(await send(...list, "", "")).toStartWith("HTTP/1.1 400");
  for (const path of ["/healthz", "/readyz"]) {
    expect(await send(`GET ${path} HTTP/1.0`, "", "")).toStartWith("HTTP/1.1 200");
  }
  expect(await send("GET /plants HTTP/1.0", "", "")).toStartWith("HTTP/1.1 400");
});

// Each is /metrics once dot segments and backslashes are resolved, as the runtime does.
const hidden = [
  ...["/.\\metrics", "/x\\..\\metrics", "/./metrics", "/%2e/metrics", "/plants/../metrics?x"],
  ...["/assets/%2e%2e\\metrics", "http://a/x/../metrics"],
];
const absent = ["//metrics", "/\\metrics", "/%6detrics", "/metrics/", "/metrics%20", "/METRICS"];
const plain = ["/metrics", "/", "/healthz", "/docs", "http://a/metrics", "http://a/", "http://a"];

test.each([
  ...hidden.map((target) => [target, 400] as const),
  ...absent.map((target) => [target, 404] as const),
  ...plain.map((target) => [target, 200] as const),
])("a path that a proxy's rules may not recognize: %s is %d", async (target, status) => {
  const response = await ask(`GET ${target}`);
  expect(response).toStartWith(`HTTP/1.1 ${status}`);
  if (status === 400) expect(response).toContain('"errors":[{"parameter":"path","detail":"');
});

test("a body that doesn't arrive within 15 seconds is 408, and its connection is closed", async () => {
  const response = await late;
  expect(response).toStartWith("HTTP/1.1 408 ");
  expect(response).toMatch(/^connection: close\r$/im);
  expect(response).toContain("within 15 seconds");
});
