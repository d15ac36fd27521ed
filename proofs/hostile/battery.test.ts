/**
 * What a hostile client sends, byte for byte: bodies that lie about where they end, and requests
 * hidden in others. Each has one interpretation, or ends with a closed connection.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { connect } from "node:net";
import {
  callAnew,
  type RunningService,
  startService,
  waitFor,
} from "../../testing/running-service.ts";

setDefaultTimeout(120_000);

/** Long enough for a packet of its own. */
const pauseMs = 30;
/** Sent last on the same connection, to see whether it is open and in step. */
const probeId = "still-in-step";
const probe = `GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${probeId}\r\nConnection: close\r\n\r\n`;

/** Stands for the real token, and is as long, so that lengths can be computed beforehand. */
const tokenMark = `plant_${"T".repeat(49)}`;
/** The only plant before every case, and after it. */
const victim = [{ id: 7, name: "Victim", tag: "" }];

const host = "Host: plants.example";
const authorization = `Authorization: Bearer ${tokenMark}`;
const json = "Content-Type: application/json";
const chunked = "Transfer-Encoding: chunked";
const lastChunk = "0\r\n\r\n";
const fern = '{"name":"Fern"}';

const head = (...lines: readonly string[]) => `${lines.join("\r\n")}\r\n\r\n`;
/** A good list request, with more headers. */
const get = (...headers: readonly string[]) =>
  head("GET /plants?limit=0 HTTP/1.1", host, authorization, ...headers);
/** The head of a create; the headers frame its body. */
const post = (...headers: readonly string[]) =>
  head("POST /plants HTTP/1.1", host, authorization, json, ...headers);
const length = (value: string | number) => `Content-Length: ${value}`;
const filled = (bytes: number) => get(`X: ${"x".repeat(bytes - get("X: ").length)}`);
const chunk = (data: string) => `${data.length.toString(16)}\r\n${data}\r\n`;

const nowhere = head("POST /nothing HTTP/1.1", host, chunked);
const tooLong = post(chunked) + chunk(fern.padEnd(2 ** 16 + 1));

/** What an attacker wants to run on somebody else's connection. */
const smuggled = head("DELETE /plants/7 HTTP/1.1", host, authorization);
/** One request for a parser that uses the length, two for one that uses the chunks. */
const hidden = lastChunk + smuggled;

/**
 * By the outcome: every status in order, and whether the connection is "open" for the next request.
 * "refused" is any status from 400 on: which one the runtime chooses may depend on the processor.
 * The parts of an array are sent as packets of their own.
 */
const cases: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>> = {
  "refused closed": {
    "a length that covers a request after the last chunk (CL.TE)":
      post(length(hidden.length), chunked) + hidden,
    "a length that ends within the chunks (TE.CL)":
      post(length(4), chunked) + chunk(smuggled) + lastChunk,
    "Transfer-Encoding twice, one unknown (TE.TE)":
      post(chunked, "Transfer-Encoding: cow") + hidden,
    "a space before the colon": post("Transfer-Encoding : chunked") + hidden,
    "a folded header": post("Transfer-Encoding:\r\n chunked") + hidden,
    "a bare line feed between headers": post("X: y\nTransfer-Encoding: chunked") + hidden,
    "chunks in HTTP/1.0": post(chunked).replace("/1.1", "/1.0") + chunk(fern) + lastChunk,
    ...Object.fromEntries(
      ["gzip, chunked", "chunked,", "chunked\0", ""].map((value) => [
        `Transfer-Encoding of ${JSON.stringify(value)}`,
        post(`Transfer-Encoding: ${value}`) + hidden,
      ]),
    ),
    ...Object.fromEntries(
      ["15, 15", "-1", "+15", "0x0f", "18446744073709551631"].map((value) => [
        `Content-Length of ${value}`,
        post(length(value)) + fern,
      ]),
    ),
    ...Object.fromEntries(
      ["0xf", "e", "10", "", "1000000000000000f", "f;\n"].map((size) => [
        `a chunk's size of ${JSON.stringify(size)}`,
        `${post(chunked)}${size}\r\n${fern}\r\n${lastChunk}${smuggled}`,
      ]),
    ),
    "a request in place of the last chunk": post(chunked) + chunk(fern) + smuggled,
    "headers of 16 KiB and 1 byte": filled(2 ** 14 + 1),
  },
  "200 open": {
    "headers of 16 KiB": filled(2 ** 14),
    "a request in the chunks of a GET": get(chunked) + chunk(smuggled) + lastChunk,
    "a request in chunks of a GET that arrive after the 200": [
      get(chunked),
      chunk(smuggled) + lastChunk,
    ],
  },
  "400 open": {
    "a request in the chunks of a DELETE":
      head("DELETE /plants/9 HTTP/1.1", host, authorization, chunked) + chunk(smuggled) + lastChunk,
    "Transfer-Encoding with an underscore":
      post("Transfer_Encoding: chunked", length(hidden.length)) + hidden,
    "a request where a body should be, on a GET": get(length(smuggled.length)) + smuggled,
  },
  "404 open": {
    "a request as a body for no path":
      head("POST /nothing HTTP/1.1", host, length(smuggled.length)) + smuggled,
    "a request in the chunks of a body for no path": nowhere + chunk(smuggled) + lastChunk,
    "a request in chunks that arrive after the 404": [nowhere, chunk(smuggled), lastChunk],
  },
  "404 400 closed": {
    "a request instead of a chunk, after the 404": [nowhere, smuggled],
    "a request instead of the last chunk, after the 404": [nowhere + chunk(fern), smuggled],
    "a wrong size of a chunk, after the 404": [nowhere, `0xf\r\n${fern}\r\n${hidden}`],
    "a chunk that is longer than its size, after the 404": [nowhere, `4\r\n${fern}\r\n${hidden}`],
  },
  "413 closed": {
    "a length over every limit, and a request for a body": post(length(2 ** 20 + 1)) + smuggled,
  },
  "413 open": {
    "chunks over the limit, and a request in the rest": [tooLong, chunk(smuggled), lastChunk],
  },
  "413 400 closed": {
    "chunks over the limit, and a request instead of the rest": [tooLong, smuggled],
  },
  "400 closed": {
    "the same length twice, with a request after it":
      post(length(fern.length), length(fern.length)) + fern + smuggled,
  },
  "200 closed": {
    "Connection: close, and a request after it": get("Connection: close") + smuggled,
  },
  closed: { "headers that never end": get().slice(0, -2) },
};

let service: RunningService;
const restore = () => callAnew(service, "PUT /plants/7", { body: '{"name":"Victim"}' });

beforeAll(async () => {
  service = await startService();
  await restore();
});

afterAll(() => service[Symbol.asyncDispose]());

const listed = Object.entries(cases).flatMap(([outcome, named]) =>
  Object.entries(named).map(([name, sent]) => [name, outcome, sent] as const),
);

test.each(listed)("%s: %s", async (_, outcome, sent) => {
  const seen = await play([sent].flat());
  const isRefused = outcome === "refused closed";
  // A response may be lost with a connection that closes while requests are unread.
  const isLost = seen === "closed" && outcome.endsWith(" closed");
  if (!isLost) expect(isRefused ? seen.replace(/^[45]\d\d/, "refused") : seen).toBe(outcome);
  // Writes are committed in order, so earlier ones are done after this one.
  expect((await restore()).status).toBe(200);
  expect(await (await service.call("GET /plants?include=id")).json()).toEqual(victim);
});

test("a refused body that doesn't end is cut off", async () => {
  const socket = connect({ host: "127.0.0.1", port: service.port });
  let received = "";
  socket
    .on("error", () => {})
    .on("data", (bytes: Buffer) => {
      received += bytes;
    });
  socket.write(nowhere);
  const piece = chunk(" ".repeat(1_000));
  await waitFor(() => {
    socket.write(piece);
    return socket.destroyed || undefined;
  });
  expect(received).toStartWith("HTTP/1.1 404 ");
});

/** Returns the statuses, and whether the connection was open for a last request. */
async function play(packets: readonly string[]): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port: service.port });
  const closed = new Promise((resolve) => socket.once("close", resolve));
  let received = "";
  socket
    .on("error", () => {})
    .on("data", (bytes: Buffer) => {
      received += bytes.toString("latin1");
    });
  for (const packet of packets) {
    socket.write(Buffer.from(packet.replaceAll(tokenMark, service.token), "latin1"));
    await Bun.sleep(pauseMs);
  }
  await waitFor(() => received !== "" || socket.destroyed || undefined);
  // So that it can close the connection after the response.
  await Bun.sleep(pauseMs);
  socket.write(probe);
  await closed;
  const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);
  const isOpen = received.includes(probeId);
  return [...statuses.slice(0, isOpen ? -1 : undefined), isOpen ? "open" : "closed"].join(" ");
}
