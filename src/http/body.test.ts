/** Reading a body: in pieces, not beyond the limit, not for ever, and not too many at once. */
import { afterEach, describe, expect, jest, test } from "bun:test";
import { bodyTimeoutMs, json, readBody as read, smallBodyBytes } from "./body.ts";

const bodyBytesMax = json.bytesMax;
const readBody = (request: Request) => read(request, json);

const url = "http://localhost/plants";

function requestOf(body: BodyInit, headers: Record<string, string> = {}): Request {
  return new Request(url, { method: "POST", body, headers });
}

test.each([
  ["application/json;", true],
  ["application/json; charset=utf-8; ", true],
  ["application/json;;", false],
  ["application/json; charset=latin1;", false],
])("whether the type %j is JSON in UTF-8: %p", (type, isExpected) => {
  expect(json.pattern.test(type)).toBe(isExpected);
});

/** Without a declared length, as a chunked body arrives. */
function streamOf(...chunks: Uint8Array[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
}

function failureOf(reading: Promise<unknown>): Promise<unknown> {
  return reading.then(
    () => "read",
    (error) => error,
  );
}

describe("a body", () => {
  test("in chunks that split a character is put together again", async () => {
    const bytes = new TextEncoder().encode("🌱");
    const chunks = [...bytes].map((byte) => Uint8Array.of(byte));
    expect(await readBody(requestOf(streamOf(...chunks)))).toBe("🌱");
  });

  test("that declares one byte more is refused unread", async () => {
    let isRead = false;
    const body = new ReadableStream(
      {
        pull(controller) {
          isRead = true;
          controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const request = requestOf(body, { "content-length": String(bodyBytesMax + 1) });
    expect(await failureOf(readBody(request))).toMatchObject({ code: "too-large" });
    expect(isRead).toBe(false);
  });

  test("that grows by one byte more is refused, and nothing more is read of it", async () => {
    const chunks = [new Uint8Array(bodyBytesMax), new Uint8Array(1)];
    let isLeft = false;
    const body = new ReadableStream(
      {
        pull(controller) {
          const chunk = chunks.shift();
          if (!chunk) throw new Error("It was read on.");
          controller.enqueue(chunk);
        },
        cancel() {
          isLeft = true;
        },
      },
      { highWaterMark: 0 },
    );
    expect(await failureOf(readBody(requestOf(body)))).toMatchObject({ code: "too-large" });
    expect(isLeft).toBe(true);
  });

  test("that breaks off is refused", async () => {
    const body = new ReadableStream({
      pull(controller) {
        controller.error(new Error("The client left."));
      },
    });
    expect(await failureOf(readBody(requestOf(body)))).toMatchObject({
      code: "invalid-request",
      errors: [{ pointer: "", detail: "The body must arrive whole." }],
    });
  });
});

describe("a body that does not come", () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  test("is refused when its time is over, and not before", async () => {
    jest.useFakeTimers();
    let outcome: unknown = "waiting";
    const never = new ReadableStream<Uint8Array>({});
    const reading = failureOf(readBody(requestOf(never))).then((failure) => {
      outcome = failure;
    });
    jest.advanceTimersByTime(bodyTimeoutMs - 1);
    await Promise.resolve();
    expect(outcome).toBe("waiting");
    jest.advanceTimersByTime(1);
    await reading;
    expect(outcome).toMatchObject({
      code: "invalid-request",
      errors: [{ detail: "The body must arrive within 15 seconds." }],
    });
  });
});

test("long bodies are refused beyond what they may take together, and plants are not", async () => {
  const controllers: ReadableStreamDefaultController[] = [];
  const start = (controller: ReadableStreamDefaultController) => {
    controllers.push(controller);
  };
  const long = () =>
    failureOf(
      readBody(
        requestOf(new ReadableStream({ start }), { "content-length": String(bodyBytesMax) }),
      ),
    );
  const waiting = Array.from({ length: (16 * 1024 * 1024) / bodyBytesMax }, long);
  expect(await long()).toMatchObject({ code: "unavailable" });
  const plant = () => failureOf(readBody(requestOf("x", { "content-length": "1" })));
  expect(await plant()).toBe("read");
  for (const controller of controllers) controller.close();
  await Promise.all(waiting);
  const again = long();
  controllers.at(-1)?.close();
  expect(await again).toBe("read");
});

test("a body in chunks counts as a long one once it is longer than any plant", async () => {
  const controllers: ReadableStreamDefaultController<Uint8Array>[] = [];
  const start = (controller: ReadableStreamDefaultController) => {
    controllers.push(controller);
  };
  const chunked = () => failureOf(readBody(requestOf(new ReadableStream({ start }))));
  const waiting = Array.from({ length: (16 * 1024 * 1024) / bodyBytesMax }, chunked);
  const one = chunked();
  for (const controller of controllers) controller.enqueue(Buffer.alloc(smallBodyBytes, " "));
  await Bun.sleep(20);
  for (const controller of controllers) controller.enqueue(Buffer.from(" "));
  expect(await one).toMatchObject({ code: "unavailable" });
  for (const controller of controllers.slice(0, -1)) controller.close();
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(["read"]));
});
