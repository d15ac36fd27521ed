/**
 * What a hostile client sends, byte for byte: bodies that lie about where they end, and requests
 * hidden in others. Each has one interpretation, or ends with a closed connection.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
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

const host = "Host: plants.example";
const authorization = `Authorization: Bearer ${tokenMark}`;
const json = "Content-Type: application/json";
const chunked = "Transfer-Encoding: chunked";
const lastChunk = "0\r\n\r\n";
const fern = '{"name":"Fern"}';

/** The head of a request, from its first line. */
function head(...lines: readonly string[]): string {
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** A valid list request, with more headers. */
function list(...headers: readonly string[]): string {
  return head("GET /plants?limit=0 HTTP/1.1", host, authorization, ...headers);
}

/** The head of a create, with headers that say where its body ends. */
function create(...headers: readonly string[]): string {
  return head("POST /plants HTTP/1.1", host, authorization, json, ...headers);
}

/** The head of a request for a path that there is not, without a token. */
function createNowhere(...headers: readonly string[]): string {
  return head("POST /nothing HTTP/1.1", host, ...headers);
}

function contentLength(value: string | number): string {
  return `Content-Length: ${value}`;
}

function chunk(data: string): string {
  return `${data.length.toString(16)}\r\n${data}\r\n`;
}

/** A valid list request of this many bytes. */
function listOfSize(bytes: number): string {
  return list(`X: ${"x".repeat(bytes - list("X: ").length)}`);
}

/** What an attacker wants to run on another user's connection. It deletes the only plant. */
const smuggled = head("DELETE /plants/7 HTTP/1.1", host, authorization);
/** One request for a parser that uses the length, two for one that uses the chunks. */
const hidden = lastChunk + smuggled;
/** A create whose body is one byte over the limit, without its last chunk. */
const tooLong = create(chunked) + chunk(fern.padEnd(2 ** 16 + 1));

interface Attack {
  readonly name: string;
  /** What is sent, each as a packet of its own. */
  readonly packets: readonly string[];
}

let service: RunningService;

beforeAll(async () => {
  service = await startService();
  expect((await createVictim()).status).toBe(201);
});

afterAll(() => service[Symbol.asyncDispose]());

/** The only plant before every attack, and after it. */
function createVictim(): Promise<Response> {
  return callAnew(service, "PUT /plants/7", { body: '{"name":"Victim"}' });
}

/** No hidden request was carried out, and no plant was created. */
async function expectNothingChanged(): Promise<void> {
  // Writes are committed in order, so earlier ones are done after this one. A victim that was
  // deleted would be created again, with 201.
  expect((await createVictim()).status).toBe(200);
  const listed = await service.call("GET /plants?include=id");
  expect(await listed.json()).toEqual([{ id: 7, name: "Victim", tag: "" }]);
}

/** What the service does with packets on a connection of their own. */
interface Reaction {
  /** Without that of the last request. */
  readonly statuses: number[];
  /** A last request on the same connection got its response. */
  readonly isOpen: boolean;
}

async function send(packets: readonly string[]): Promise<Reaction> {
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
  const all = [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  const isOpen = received.includes(probeId);
  return { statuses: isOpen ? all.slice(0, -1) : all, isOpen };
}

/** These responses, and the connection is open for the next request. */
function testOpen(statuses: readonly number[], attacks: readonly Attack[]): void {
  test.each(attacks)("$name", async ({ packets }) => {
    const reaction = await send(packets);

    expect(reaction).toEqual({ statuses: [...statuses], isOpen: true });
    await expectNothingChanged();
  });
}

/** These responses, and the connection is closed. */
function testClosed(statuses: readonly number[], attacks: readonly Attack[]): void {
  test.each(attacks)("$name", async ({ packets }) => {
    const reaction = await send(packets);

    expect(reaction.isOpen).toBe(false);
    // Responses may be lost with a connection that closes while requests are unread.
    if (reaction.statuses.length > 0) expect(reaction.statuses).toEqual([...statuses]);
    await expectNothingChanged();
  });
}

describe("one refusal, and a closed connection, for", () => {
  const attacks: readonly Attack[] = [
    {
      name: "a length that covers a request after the last chunk (CL.TE)",
      packets: [create(contentLength(hidden.length), chunked) + hidden],
    },
    {
      name: "a length that ends within the chunks (TE.CL)",
      packets: [create(contentLength(4), chunked) + chunk(smuggled) + lastChunk],
    },
    {
      name: "Transfer-Encoding twice, one unknown (TE.TE)",
      packets: [create(chunked, "Transfer-Encoding: cow") + hidden],
    },
    {
      name: "a space before the colon",
      packets: [create("Transfer-Encoding : chunked") + hidden],
    },
    {
      name: "a folded header",
      packets: [create("Transfer-Encoding:\r\n chunked") + hidden],
    },
    {
      name: "a bare line feed between headers",
      packets: [create("X: y\nTransfer-Encoding: chunked") + hidden],
    },
    {
      name: "chunks in HTTP/1.0",
      packets: [create(chunked).replace("/1.1", "/1.0") + chunk(fern) + lastChunk],
    },
    ...["gzip, chunked", "chunked,", "chunked\0", ""].map((value) => ({
      name: `Transfer-Encoding of ${JSON.stringify(value)}`,
      packets: [create(`Transfer-Encoding: ${value}`) + hidden],
    })),
    ...["15, 15", "-1", "+15", "0x0f", "18446744073709551631"].map((value) => ({
      name: `Content-Length of ${value}`,
      packets: [create(contentLength(value)) + fern],
    })),
    ...["0xf", "e", "10", "", "1000000000000000f", "f;\n"].map((size) => ({
      name: `a chunk's size of ${JSON.stringify(size)}`,
      packets: [`${create(chunked)}${size}\r\n${fern}\r\n${lastChunk}${smuggled}`],
    })),
    {
      name: "a request in place of the last chunk",
      packets: [create(chunked) + chunk(fern) + smuggled],
    },
    {
      name: "headers of 16 KiB and 1 byte",
      packets: [listOfSize(2 ** 14 + 1)],
    },
  ];

  test.each(attacks)("$name", async ({ packets }) => {
    const { statuses, isOpen } = await send(packets);

    expect(isOpen).toBe(false);
    // The response may be lost with a connection that closes while requests are unread.
    expect(statuses.length).toBeLessThanOrEqual(1);
    // Which status the runtime chooses may depend on the processor.
    for (const status of statuses) expect(status).toBeWithin(400, 600);
    await expectNothingChanged();
  });
});

describe("one 200, and the connection stays open, for", () => {
  testOpen(
    [200],
    [
      {
        name: "headers of 16 KiB",
        packets: [listOfSize(2 ** 14)],
      },
      {
        name: "a request in the chunks of a GET",
        packets: [list(chunked) + chunk(smuggled) + lastChunk],
      },
      {
        name: "a request in chunks of a GET that arrive after the 200",
        packets: [list(chunked), chunk(smuggled) + lastChunk],
      },
    ],
  );
});

describe("one 400, and the connection stays open, for", () => {
  const deletion = head("DELETE /plants/9 HTTP/1.1", host, authorization, chunked);

  testOpen(
    [400],
    [
      {
        name: "a request in the chunks of a DELETE",
        packets: [deletion + chunk(smuggled) + lastChunk],
      },
      {
        name: "Transfer-Encoding with an underscore",
        packets: [create("Transfer_Encoding: chunked", contentLength(hidden.length)) + hidden],
      },
      {
        name: "a request where a body should be, on a GET",
        packets: [list(contentLength(smuggled.length)) + smuggled],
      },
    ],
  );
});

describe("one 404, and the connection stays open, for", () => {
  testOpen(
    [404],
    [
      {
        name: "a request as a body for no path",
        packets: [createNowhere(contentLength(smuggled.length)) + smuggled],
      },
      {
        name: "a request in the chunks of a body for no path",
        packets: [createNowhere(chunked) + chunk(smuggled) + lastChunk],
      },
      {
        name: "a request in chunks that arrive after the 404",
        packets: [createNowhere(chunked), chunk(smuggled), lastChunk],
      },
    ],
  );
});

describe("a 404, then a 400 and a closed connection, for", () => {
  testClosed(
    [404, 400],
    [
      {
        name: "a request instead of a chunk, after the 404",
        packets: [createNowhere(chunked), smuggled],
      },
      {
        name: "a request instead of the last chunk, after the 404",
        packets: [createNowhere(chunked) + chunk(fern), smuggled],
      },
      {
        name: "a wrong size of a chunk, after the 404",
        packets: [createNowhere(chunked), `0xf\r\n${fern}\r\n${hidden}`],
      },
      {
        name: "a chunk that is longer than its size, after the 404",
        packets: [createNowhere(chunked), `4\r\n${fern}\r\n${hidden}`],
      },
    ],
  );
});

describe("one 413, and a closed connection, for", () => {
  testClosed(
    [413],
    [
      {
        name: "a length over every limit, and a request for a body",
        packets: [create(contentLength(2 ** 20 + 1)) + smuggled],
      },
    ],
  );
});

describe("one 413, and the connection stays open, for", () => {
  testOpen(
    [413],
    [
      {
        name: "chunks over the limit, and a request in the rest",
        packets: [tooLong, chunk(smuggled), lastChunk],
      },
    ],
  );
});

describe("a 413, then a 400 and a closed connection, for", () => {
  testClosed(
    [413, 400],
    [
      {
        name: "chunks over the limit, and a request instead of the rest",
        packets: [tooLong, smuggled],
      },
    ],
  );
});

describe("one 400, and a closed connection, for", () => {
  testClosed(
    [400],
    [
      {
        name: "the same length twice, with a request after it",
        packets: [create(contentLength(fern.length), contentLength(fern.length)) + fern + smuggled],
      },
    ],
  );
});

describe("one 200, and a closed connection, for", () => {
  testClosed(
    [200],
    [
      {
        name: "Connection: close, and a request after it",
        packets: [list("Connection: close") + smuggled],
      },
    ],
  );
});

test("headers that never end get no response, and the connection is closed", async () => {
  const unfinished = list().slice(0, -2);

  expect(await send([unfinished])).toEqual({ statuses: [], isOpen: false });
  await expectNothingChanged();
});

/** Between the 5 seconds after which such a body is cut off, and the 30 of an idle connection. */
const cutOffMsMax = 20_000;

test("a refused body that doesn't end is cut off, sooner than an idle connection", async () => {
  const socket = connect({ host: "127.0.0.1", port: service.port });
  let received = "";
  socket
    .on("error", () => {})
    .on("data", (bytes: Buffer) => {
      received += bytes;
    });

  socket.write(createNowhere(chunked));
  await waitFor(
    () => {
      socket.write(chunk(" ".repeat(1_000)));
      return socket.destroyed || undefined;
    },
    () => false,
    cutOffMsMax,
  );

  expect(received).toStartWith("HTTP/1.1 404 ");
});
