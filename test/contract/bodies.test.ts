/** Bodies over sockets: those that come in pieces, late, without an end or where none is expected. */
import { afterAll, describe, expect, test } from "bun:test";
import { text } from "node:stream/consumers";
import { startService } from "../../testing/running-service.ts";
import { skipsUnless } from "../../testing/skipping.ts";
import { joinLines, openSockets, statusesIn } from "./raw-requests.ts";

const service = await startService();
afterAll(() => service[Symbol.asyncDispose]());
const { authorization, openSocket, send, ask } = openSockets(service);

const sixPlants = JSON.stringify(Array(6).fill({ name: "Fern" }));
await service.call("POST /plants/bulk", { body: sixPlants });

const wrongAuthorization = "Authorization: Bearer wrong";
const json = "Content-Type: application/json";
const chunked = "Transfer-Encoding: chunked";
const close = "Connection: close";
/** Has 15 bytes, which is `f` as the size of a chunk. */
const fern = '{"name":"Fern"}';

async function readStatus(path: string): Promise<number> {
  const { status } = await service.call(`GET ${path}`);
  return status;
}

// These take seconds. The last tests wait for them.
const lateBody = send(
  "POST /plants HTTP/1.1",
  "Host: a",
  authorization,
  json,
  "Content-Length: 15",
  "",
  "{",
);
const endlessBody = sendEndlessBody();

/** Sends chunks until the service closes the connection, or for about 20 seconds. */
async function sendEndlessBody() {
  const socket = openSocket();
  let response = "";
  let isClosed = false;
  socket.on("data", (bytes) => {
    response += bytes;
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    isClosed = true;
  });
  socket.write(
    joinLines("POST /plants HTTP/1.1", "Host: a", chunked, wrongAuthorization, json, "", ""),
  );
  for (let chunks = 0; chunks < 200 && !isClosed; chunks++) {
    socket.write("1\r\n \r\n");
    await Bun.sleep(100);
  }
  const result = { response, isClosed };
  socket.destroy();
  return result;
}

test("a body can come in chunks", async () => {
  const response = await send(
    "POST /plants HTTP/1.1",
    "Host: a",
    close,
    authorization,
    json,
    chunked,
    "",
    "8",
    '{"name":',
    "6",
    '"Fern"',
    "1",
    "}",
    "0",
    "",
    "",
  );
  expect(response).toStartWith("HTTP/1.1 201");
});

test("chunks over 64 KiB are a 413 before the last one arrives", async () => {
  const response = await send(
    "POST /plants HTTP/1.1",
    "Host: a",
    close,
    authorization,
    json,
    chunked,
    "",
    "10001",
    " ".repeat(0x10001),
    "",
  );
  expect(response).toStartWith("HTTP/1.1 413");
});

test("a declared length over 64 KiB is a 413 before the body arrives", async () => {
  const response = await send(
    "POST /plants HTTP/1.1",
    "Host: a",
    close,
    authorization,
    json,
    "Content-Length: 2000000",
    "",
    "{",
  );
  expect(response).toStartWith("HTTP/1.1 413");
});

describe("a client that expects a 100 in another spelling", () => {
  test.each(["1.1", "1.0"])("gets a 417 before it sends its body by HTTP/%s", async (version) => {
    const response = await send(
      `POST /plants HTTP/${version}`,
      "Host: a",
      authorization,
      "Expect: 100-Continue",
      json,
      "Content-Length: 15",
      "",
      "",
    );
    expect(response).toStartWith("HTTP/1.1 417");
    expect(response).toContain('"type":"urn:plantstore:problem:expectation-failed"');
  });

  test.each([
    { credential: "a valid token", header: authorization, status: 417 },
    { credential: "no token", header: "Accept: */*", status: 401 },
  ])(
    "and has $credential can't have its next request taken for the body",
    async ({ header, status }) => {
      const next = joinLines("DELETE /plants/1 HTTP/1.1", "Host: a", authorization, "", "");

      const responses = await send(
        "POST /plants HTTP/1.1",
        "Host: a",
        header,
        "Expect: 100-Continue",
        json,
        `Content-Length: ${next.length}`,
        "",
        next,
      );

      expect(statusesIn(responses)).toEqual([status]);
      expect(responses.toLowerCase()).toContain("\r\nconnection: close\r\n");
    },
  );
});

describe("a body where none is expected", () => {
  /** The statuses of this request, and of one on the same connection after its response. */
  async function sendAndThenNext(...lines: string[]): Promise<number[]> {
    const socket = openSocket();
    const received = text(socket);
    socket.write(joinLines(...lines));
    await new Promise((resolve) => socket.once("data", resolve));
    socket.write(joinLines("GET /healthz HTTP/1.1", "Host: a", close, "", ""));
    return statusesIn(await received);
  }

  const hiddenRequest = joinLines("DELETE /plants/2 HTTP/1.1", "Host: a", authorization, "", "");
  describe.each(["GET", "HEAD"])("is ignored by %s in chunks", (method) => {
    test.each([
      { what: "empty", chunks: ["0", "", ""] },
      { what: "a word", chunks: ["5", "hello", "0", "", ""] },
      {
        what: "a hidden request",
        chunks: [hiddenRequest.length.toString(16), hiddenRequest, "0", "", ""],
      },
    ])("that are $what, and the next request gets its response", async ({ chunks }) => {
      const head = [`${method} /plants/2 HTTP/1.1`, "Host: a", authorization, chunked, ""];

      const statuses = await sendAndThenNext(...head, ...chunks);

      expect(statuses).toEqual([200, 200]);
      expect(await readStatus("/plants/2")).toBe(200);
    });
  });

  test("is a 400 for DELETE in chunks, which deletes nothing", async () => {
    const head = ["DELETE /plants/3 HTTP/1.1", "Host: a", authorization, chunked, ""];

    const statuses = await sendAndThenNext(...head, "1", "x", "0", "", "");

    expect(statuses).toEqual([400, 200]);
    expect(await readStatus("/plants/3")).toBe(200);
  });

  test("is accepted by DELETE in chunks if it's empty", async () => {
    const head = ["DELETE /plants/4 HTTP/1.1", "Host: a", authorization, chunked, ""];

    const statuses = await sendAndThenNext(...head, "0", "", "");

    expect(statuses).toEqual([204, 200]);
    expect(await readStatus("/plants/4")).toBe(404);
  });

  test.each(["GET", "DELETE"])("is accepted by %s if its length is 0", async (method) => {
    const response = await ask(`${method} /plants/5`, "Content-Length: 0");
    expect(response).toMatch(/^HTTP\/1\.1 20/);
  });

  test.each(["GET", "DELETE"])("is a 400 for %s if its length isn't 0", async (method) => {
    const response = await ask(`${method} /plants/6`, "Content-Length: 2");
    expect(response).toStartWith("HTTP/1.1 400");
  });
});

describe("a client that still sends chunks sees its refusal and its next response:", () => {
  describe.each([
    {
      status: 401,
      lines: ["POST /plants HTTP/1.1", "Host: a", chunked, wrongAuthorization, json],
      sizes: [100, 100_000, 3_000_000],
    },
    {
      status: 404,
      lines: ["POST /nothing HTTP/1.1", "Host: a", chunked, authorization, json],
      sizes: [100, 100_000, 3_000_000],
    },
    {
      status: 405,
      lines: ["PUT /plants HTTP/1.1", "Host: a", chunked, authorization, json],
      sizes: [100, 100_000, 3_000_000],
    },
    {
      status: 413,
      lines: ["POST /plants HTTP/1.1", "Host: a", chunked, authorization, json],
      sizes: [100_000, 3_000_000],
    },
    {
      status: 415,
      lines: [
        "POST /plants HTTP/1.1",
        "Host: a",
        chunked,
        authorization,
        "Content-Type: text/plain",
      ],
      sizes: [100, 100_000, 3_000_000],
    },
  ])("a $status", ({ status, lines, sizes }) => {
    test.each(sizes)("while it sends %d bytes", async (size) => {
      const socket = openSocket();
      const received = text(socket);

      socket.write(joinLines(...lines, "", ""));
      const piece = " ".repeat(size / 20);
      for (let pieces = 0; pieces < 20; pieces++) {
        socket.write(`${piece.length.toString(16)}\r\n${piece}\r\n`);
        await Bun.sleep(5);
      }
      socket.write("0\r\n\r\n");
      socket.write("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");

      const responses = await received.catch((error) => `${error}`);
      expect(statusesIn(responses)).toEqual([status, 200]);
    });
  });

  const python = ["/usr/bin/python3", "python3"].find(
    (each) => Bun.which(each) && Bun.spawnSync([each, "-c", "import requests"]).success,
  );
  test.skipIf(skipsUnless(python !== undefined, "not installed: requests for Python"))(
    "a 401 with Python's requests",
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

test("a body whose chunks end in the wrong way changes nothing", async () => {
  const readGarden = async () => (await service.call("GET /me")).json();
  const before = await readGarden();

  // The 400 overtakes what a request does. By the last one, the others would have done it.
  for (let sent = 0; sent < 10; sent++) {
    const socket = openSocket();
    const response = text(socket);
    socket.write(
      joinLines("POST /plants HTTP/1.1", "Host: a", chunked, authorization, json, "", ""),
    );
    // When the chunks arrive, the service waits for them.
    await Bun.sleep(20);
    socket.write(joinLines("f", fern, "0", "X", "", ""));
    expect(await response).toStartWith("HTTP/1.1 400");
  }

  expect(await readGarden()).toEqual(before);
});

test("an endless body is dropped for seconds, and then its connection is closed", async () => {
  const { response, isClosed } = await endlessBody;
  expect(response).toStartWith("HTTP/1.1 401 ");
  expect(isClosed).toBe(true);
});

test("a body that doesn't arrive within 15 seconds is a 408 that closes its connection", async () => {
  const response = await lateBody;
  expect(response).toStartWith("HTTP/1.1 408 ");
  expect(response).toMatch(/^connection: close\r$/im);
  expect(response).toContain("within 15 seconds");
});
