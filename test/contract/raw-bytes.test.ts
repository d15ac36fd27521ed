/** Responses byte for byte, over sockets; proofs/hostile/ has what no well-behaved client sends. */
import { afterAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { startService } from "../../testing/running-service.ts";
import { skipsUnless } from "../../testing/skipping.ts";

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

/** Headers that take six seconds, and headers without an end. */
const slow = sendSlowly(["GET /plants/1 HTTP/1.1\r\nHost: a\r\nConn", "ection: close\r\n"], 6_000);
const endless = send("GET /plants/1 HTTP/1.1", "Host: a", "X: ");

/** Sends the second piece this much later, and then the token. */
async function sendSlowly([first, second]: [string, string], ms: number): Promise<string> {
  const socket = connect(service.port, "127.0.0.1");
  const received = text(socket);
  socket.write(first);
  await Bun.sleep(ms);
  socket.write(`${second}${authorization}\r\n\r\n`);
  return received;
}

const chunkedTo = (target: string, ...headers: string[]) =>
  [`${target} HTTP/1.1`, "Host: a", "Transfer-Encoding: chunked", ...headers, "", ""].join("\r\n");

/** Sends a body without an end, until the service closes the connection. That takes seconds, too. */
async function sendForever() {
  const socket = connect(service.port, "127.0.0.1");
  let [response, isClosed] = ["", false];
  socket.on("data", (bytes) => {
    response += bytes;
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    isClosed = true;
  });
  socket.write(chunkedTo("POST /plants", "Authorization: Bearer wrong", json));
  for (let chunks = 0; chunks < 200 && !isClosed; chunks++) {
    socket.write("1\r\n \r\n");
    await Bun.sleep(100);
  }
  const result = { response, isClosed };
  socket.destroy();
  return result;
}
const endlessBody = sendForever();

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

describe("a body in chunks where none is expected", () => {
  const chunked = "Transfer-Encoding: chunked";
  const next = ["GET /healthz HTTP/1.1", "Host: a", "Connection: close", "", ""];
  /** One for each response. */
  const statuses = (responses: string) =>
    [...responses.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  /** The statuses of this request and of one that is sent after its response. */
  async function thenNext(...lines: string[]): Promise<number[]> {
    const socket = connect(service.port, "127.0.0.1");
    const received = text(socket);
    socket.write(lines.join("\r\n"));
    await new Promise((resolve) => socket.once("data", resolve));
    socket.write(next.join("\r\n"));
    return statuses(await received);
  }

  test.each(["GET", "HEAD"])(
    "is passed over by %s, and not taken for the next request",
    async (method) => {
      const hidden = ["DELETE /plants/2 HTTP/1.1", "Host: a", authorization, "", ""].join("\r\n");
      for (const body of [
        "0",
        `5\r\nhello\r\n0`,
        `${hidden.length.toString(16)}\r\n${hidden}\r\n0`,
      ]) {
        const head = [`${method} /plants/2 HTTP/1.1`, "Host: a", authorization, chunked, ""];
        expect({ body, statuses: await thenNext(...head, body, "", "") }).toEqual({
          body,
          statuses: [200, 200],
        });
      }
      expect((await service.call("GET /plants/2")).status).toBe(200);
    },
  );

  test("is none for DELETE if it's empty, and otherwise a 400", async () => {
    const remove = ["DELETE /plants/3 HTTP/1.1", "Host: a", authorization, chunked, ""];
    expect(await thenNext(...remove, "1", "x", "0", "", "")).toEqual([400, 200]);
    expect((await service.call("GET /plants/3")).status).toBe(200);
    expect(await thenNext(...remove, "0", "", "")).toEqual([204, 200]);
    expect((await service.call("GET /plants/3")).status).toBe(404);
  });

  test("is a 400 with a Content-Length that isn't 0", async () => {
    for (const line of ["GET /plants/2", "DELETE /plants/2"]) {
      expect(await ask(line, "Content-Length: 0")).toMatch(/^HTTP\/1\.1 20/);
      expect(await ask(line, "Content-Length: 2")).toStartWith("HTTP/1.1 400");
    }
  });
});

/** What docs/interface.md says of the runtime, which could differ in its next version. */
describe("the runtime", () => {
  const post = (name: string, ...headers: string[]) => {
    const body = `{"name":"${name}"}`;
    const length = `Content-Length: ${body.length}`;
    const head = ["POST /plants HTTP/1.1", "Host: a", authorization, json, length, ...headers];
    return [...head, "", body].join("\r\n");
  };

  test.each([
    ["a line break", "\r\n"],
    ["another request", "GET /me HTTP/1.1\r\nHost: a\r\n\r\n"],
  ])(
    "closes the connection if %s follows a write, which may be stored: a key finds out",
    async (name, more) => {
      let stored = 0;
      for (let time = 0; time < 10; time++) {
        const plant = `${name} ${time}`;
        const key = `Idempotency-Key: "${plant}"`;
        const lost = await send(post(plant, key) + more);
        expect(lost).not.toContain("201");
        const again = await send(post(plant, key, "Connection: close"));
        expect(again).toStartWith("HTTP/1.1 201");
        if (/^idempotency-replayed: true\r$/im.test(again)) stored++;
        const found = await service.call(`GET /plants?q=${encodeURIComponent(plant)}`);
        expect(await found.json()).toHaveLength(1);
      }
      expect(stored).toBeGreaterThan(0);
    },
  );

  test("sends a 100 to an HTTP/1.0 client that expects it", async () => {
    const request = post("Reed", "Expect: 100-continue").replace("HTTP/1.1", "HTTP/1.0");
    expect(await send(request)).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
  });

  test("ignores a chunk's extension, and refuses one with a space", async () => {
    const chunked = (extension: string) =>
      send(
        ...["POST /plants HTTP/1.1", "Host: a", ...common, json, "Transfer-Encoding: chunked", ""],
        ...[`f${extension}`, '{"name":"Reed"}', "0", "", ""],
      );
    expect(await chunked(';a="b";c')).toStartWith("HTTP/1.1 201");
    for (const extension of [';a="b c"', " ;a=b"]) {
      expect(await chunked(extension)).toStartWith("HTTP/1.1 400");
    }
  });

  test("sends a 100 before the token is checked", async () => {
    const head = ["POST /plants HTTP/1.1", "Host: a", "Connection: close", json];
    const expecting = ["Content-Length: 15", "Expect: 100-continue", "", '{"name":"Fern"}'];
    expect(await send(...head, ...expecting)).toMatch(
      /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 401 /,
    );
  });

  const create = ["POST /plants HTTP/1.1", "Host: a", authorization, json];
  const chunked = "Transfer-Encoding: chunked";
  const chunks = ["f", '{"name":"Moss"}', "0", "", ""];
  test.each([
    ["a line break before a request", 400, ["", "GET /me HTTP/1.1", "Host: a", "", ""]],
    ["a bare line feed", 505, ["GET /me HTTP/1.1\nHost: a\n\n"]],
    ["a folded header", 400, ["GET /me HTTP/1.1", "Host: a", "X: a", " b", "", ""]],
    ["a space before a colon", 400, ["GET /me HTTP/1.1", "Host: a", "X : y", "", ""]],
    ["NUL", 400, ["GET /me HTTP/1.1", "Host: a", "X: a\0b", "", ""]],
    ["another version", 505, ["GET /me HTTP/2.0", "Host: a", "", ""]],
    ["17 KB of headers", 431, ["GET /me HTTP/1.1", "Host: a", `X: ${"x".repeat(17_000)}`, "", ""]],
    ["199 headers", 431, ["GET /me HTTP/1.1", "Host: a", ...Array(198).fill("X: y"), "", ""]],
    ["a malformed length", 400, ["POST /plants HTTP/1.1", "Host: a", "Content-Length: -1", "", ""]],
    ["a length beside chunks", 400, [...create, "Content-Length: 15", chunked, "", ...chunks]],
    ["a trailer", 400, [...create, chunked, "", ...chunks.slice(0, 3), "X: y", "", ""]],
  ])("refuses %s by itself, with a bare %d that has no effect", async (_, status, lines) => {
    const response = await send(...lines);
    expect(response).toStartWith(`HTTP/1.1 ${status} `);
    expect(response).toEndWith("\r\n\r\n");
    expect(response).not.toContain("X-Request-Id");
    expect(await (await service.call("GET /plants?q=moss")).json()).toEqual([]);
  });

  test("closes the connection on an unknown method", async () => {
    expect(await send("BREW /plants HTTP/1.1", "Host: a", "", "")).toBe("");
  });
});

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

test("what a proxy could understand otherwise is a 400 that says so", async () => {
  const post = (...headers: string[]) =>
    ask("POST /plants", json, ...headers, "", '{"name":"Fern"}');
  const length = "Content-Length: 15";
  const repeated = await post(length, length);
  expect(repeated).toStartWith("HTTP/1.1 400");
  expect(repeated).toContain('"header":"Content-Length"');
  const comma = await post("Transfer-Encoding: chunked,");
  expect(comma).toStartWith("HTTP/1.1 400");
  expect(comma).toContain('"header":"Transfer-Encoding"');
});

test("headers of 16 KB and 198 lines are read", async () => {
  expect(await ask("GET /me", `X: ${"x".repeat(16_000)}`)).toStartWith("HTTP/1.1 200");
  expect(await ask("GET /me", ...Array(195).fill("X: y"))).toStartWith("HTTP/1.1 200");
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

test("a body in chunks that don't end in the right way changes nothing", async () => {
  const count = async () => (await service.call("GET /me")).json();
  const before = await count();
  // The 400 overtakes what a request does. By the last one, the others would have done it.
  for (let sent = 0; sent < 10; sent++) {
    const socket = connect(service.port, "127.0.0.1");
    const response = text(socket);
    socket.write(chunkedTo("POST /plants", authorization, json));
    // When the chunks arrive, the service waits for them.
    await Bun.sleep(20);
    socket.write('f\r\n{"name":"Fern"}\r\n0\r\nX\r\n\r\n');
    expect(await response).toStartWith("HTTP/1.1 400");
  }
  expect(await count()).toEqual(before);
});

test("a body without an end is dropped for seconds, and then its connection is closed", async () => {
  const { response, isClosed } = await endlessBody;
  expect(response).toStartWith("HTTP/1.1 401 ");
  expect(isClosed).toBe(true);
});

test("a body that doesn't arrive within 15 seconds is 408, and its connection is closed", async () => {
  const response = await late;
  expect(response).toStartWith("HTTP/1.1 408 ");
  expect(response).toMatch(/^connection: close\r$/im);
  expect(response).toContain("within 15 seconds");
});

test("headers may take eight seconds, and a connection whose headers don't end is closed", async () => {
  expect(await slow).toStartWith("HTTP/1.1 200");
  expect(await endless).toBe("");
});
