/**
 * What a hostile client sends, byte for byte, each over its own socket: bodies that lie about where
 * they end, requests hidden in others, pipelines, sizes, and connections that end too soon.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { connect } from "node:net";
import {
  callAnew,
  type RunningService,
  startService,
  waitFor,
} from "../../test/end-to-end/running-service.ts";

setDefaultTimeout(120_000);

/** Long enough for a packet of its own. */
const pauseMs = 30;
/** Sent last on the same connection, to see whether it is open and in step. */
const probeId = "still-in-step";
const probe = `GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${probeId}\r\nConnection: close\r\n\r\n`;

/** Stands for the real token, and is as long, so that lengths can be computed beforehand. */
const tokenMark = `plant_${"T".repeat(49)}`;
/** A plant that exists before every case, and must still exist after it. */
const victimId = 7;

const host = "Host: plants.example";
const authorization = `Authorization: Bearer ${tokenMark}`;
const json = "Content-Type: application/json";
const chunked = "Transfer-Encoding: chunked";
const lastChunk = "0\r\n\r\n";
const fern = '{"name":"Fern"}';
const kibi = 1024;

const head = (...lines: readonly string[]) => `${lines.join("\r\n")}\r\n\r\n`;
/** A good list request, with more headers. */
const get = (...headers: readonly string[]) =>
  head("GET /plants?limit=0 HTTP/1.1", host, authorization, ...headers);
/** The head of a create; the headers frame its body. */
const post = (...headers: readonly string[]) =>
  head("POST /plants HTTP/1.1", host, authorization, json, ...headers);
const length = (value: string | number) => `Content-Length: ${value}`;
const create = (body: string, ...headers: readonly string[]) =>
  post(length(body.length), ...headers) + body;
const chunk = (data: string) => `${data.length.toString(16)}\r\n${data}\r\n`;
const chunks = (...text: readonly string[]) => post(chunked) + text.join("");
const filled = (bytes: number) => get(`X: ${"x".repeat(bytes - get("X: ").length)}`);

/** What an attacker wants to run on somebody else's connection. */
const smuggled = head(`DELETE /plants/${victimId} HTTP/1.1`, host, authorization);
/** One request for a parser that uses the length, two for one that uses the chunks. */
const hidden = lastChunk + smuggled;
const whole = chunk(fern) + lastChunk;
const hiding = (request: string, ...headers: readonly string[]) =>
  head(`${request} HTTP/1.1`, host, ...headers, length(smuggled.length)) + smuggled;

/**
 * By the outcome: every status in order, and whether the connection is "open" for the next request.
 * "closed" alone means no response. "refused" is any status from 400 on: which one the runtime
 * chooses may depend on the processor. The parts of an array are sent as packets of their own.
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
    "chunks in HTTP/1.0": post(chunked).replace("/1.1", "/1.0") + whole,
    "a GET whose chunks hold a request": get(chunked) + chunk(smuggled) + lastChunk,
    ...Object.fromEntries(
      ["xchunked", "gzip, chunked", "chunked\0", ""].map((value) => [
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
      ["0xf", "e", "10", "", "1000000000000000f", `f;${"a".repeat(20 * kibi)}`].map((size) => [
        `a chunk's size of ${JSON.stringify(size.slice(0, 20))}`,
        chunks(`${size}\r\n${fern}\r\n`, lastChunk, smuggled),
      ]),
    ),
    "an extension that hides a chunk after a line feed": chunks(
      `f;\n${fern}\r\n0\r\n\r\n\r\n${fern}\r\n`,
      lastChunk + smuggled,
    ),
    "data without an end": chunks(`f\r\n${fern}${lastChunk}`, smuggled),
    "a request in place of the last chunk": chunks(chunk(fern), smuggled),
    "a trailer": chunks(chunk(fern), "0\r\nContent-Length: 5\r\n\r\n"),
    "bare line feeds throughout": get().replaceAll("\r\n", "\n"),
    "a proxy's greeting (PROXY v1)": `PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\n${get()}`,
    "CONNECT to an authority": head("CONNECT plants.example:443 HTTP/1.1", host, authorization),
    "headers of 16 KiB and 1 byte": filled(16 * kibi + 1),
    "headers that never end": `${get().slice(0, -2)}X: ${"x".repeat(100 * kibi)}`,
    "a target that never ends": `GET /${"x".repeat(100 * kibi)}`,
  },
  "200 open": {
    "headers of 16 KiB": filled(16 * kibi),
    "an upgrade to HTTP/2": get("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c"),
    "a request in two packets, cut in the line end": [get().slice(0, -1), "\n"],
  },
  "400 open": {
    "Transfer-Encoding with an underscore":
      post("Transfer_Encoding: chunked", length(hidden.length)) + hidden,
    "a request where a body should be, on a GET": get(length(smuggled.length)) + smuggled,
  },
  "401 open": { "a request as a body without a token": hiding("POST /plants", json) },
  "404 open": {
    "a request as a body for no path": hiding("POST /nothing"),
    "encoded dots in the files of the pages": head("GET /assets/..%2f..%2fx HTTP/1.1", host),
  },
  "415 open": { "a request as a body of a wrong type": hiding("POST /plants", authorization) },
  "413 closed": {
    "a length over every limit, and a request for a body": post(length(kibi ** 2 + 1)) + smuggled,
    "chunks over the limit, and a request after them": [
      chunks(chunk(fern.padEnd(64 * kibi + 1))),
      lastChunk + smuggled,
    ],
  },
  "400 closed": {
    "the same length twice, with a request after it": create(fern, length(fern.length)) + smuggled,
  },
  "400 refused closed": {
    "a body that has one byte too many": [post(length(14)) + fern.slice(0, 14), "}"],
  },
  "200 refused closed": {
    "a malformed request between two lists": `${get()}GET\r\n\r\n${smuggled}`,
  },
  "200 closed": {
    "Connection: close, and a request after it": get("Connection: close") + smuggled,
  },
  "200 200 200 open": { "three lists at once": get().repeat(3) },
  "200 201 open": { "a create after a list": get() + create(fern) },
  "100 201 open": {
    "Expect: 100-continue": [post(length(15), "Expect: 100-continue"), fern],
  },
  closed: {
    "a create after the last chunk of another": chunks(whole, post(length(0))),
    "a list after a create that waits for the disk": create(fern) + get(),
  },
};

let service: RunningService;

beforeAll(async () => {
  service = await startService();
  await callAnew(service, "POST /plants", { body: `{"name":"Victim","id":${victimId}}` });
});

afterAll(() => service[Symbol.asyncDispose]());

const listed = Object.entries(cases).flatMap(([outcome, named]) =>
  Object.entries(named).map(([name, sent]) => [name, outcome, sent] as const),
);

test.each(listed)("%s: %s", async (_, outcome, sent) => {
  const played = await play([sent].flat());
  const isRefused = outcome.includes("refused");
  const seen = isRefused ? played.replace(/[45]\d\d(?= closed)/, "refused") : played;
  // A response that has to wait lets the runtime close the connection, and on a busy machine, a
  // list waits for its turn, too.
  const isCut = /^200 20\d/.test(outcome) && outcome.startsWith(seen.replace("closed", ""));
  if (!isCut) expect(seen).toBe(outcome);
  // Writes are committed in order, so earlier ones are done after one more.
  await callAnew(service, "POST /plants", { body: '{"name":"Last"}' });
  const plants = await (await service.call("GET /plants?include=id")).json();
  expect(plants).toContainEqual({ id: victimId, name: "Victim", tag: "" });
  // A create without a response may have been done. A refused one must not.
  const others = plants.filter(({ name }: { name: string }) => name === "Fern");
  if (outcome !== "closed" && !outcome.includes("201")) expect(others).toEqual([]);
  for (const { id } of others) await service.call(`DELETE /plants/${id}`);
});

/** Returns the statuses, and whether the connection was open for a last request. */
async function play(packets: readonly string[]): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port: service.port });
  let [received, isClosed] = ["", false];
  const statuses = () => [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);
  socket.on("data", (bytes: Buffer) => {
    received += bytes.toString("latin1");
  });
  for (const event of ["end", "close", "error"]) {
    socket.on(event, () => {
      isClosed = true;
    });
  }
  for (const [index, packet] of packets.entries()) {
    if (index > 0) await Bun.sleep(pauseMs);
    socket.write(Buffer.from(packet.replaceAll(tokenMark, service.token), "latin1"));
  }
  await waitFor(() => isClosed || statuses().some((status) => status !== "100") || undefined);
  // So that it can close the connection after the response.
  await Bun.sleep(pauseMs);
  if (!isClosed) socket.write(probe);
  await waitFor(() => isClosed || undefined);
  socket.destroy();
  const isOpen = received.includes(probeId);
  return [...statuses().slice(0, isOpen ? -1 : undefined), isOpen ? "open" : "closed"].join(" ");
}
