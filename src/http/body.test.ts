/** Reading a body: in pieces, not beyond the limit, not for ever, and not too many at once. */
import { afterEach, describe, expect, jest, test } from "bun:test";
import { Admission, admissionDefaults } from "./admission.ts";
import { bodyTimeoutMs, json, readBody as read, smallBodyBytes } from "./body.ts";

const readBody = (request: Request, held = new Admission().hold("ann")) =>
  read(request, json, held);

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

test("a body that is longer than any plant needs room, and a plant does not", async () => {
  const admission = new Admission();
  using full = admission.hold("ann");
  full.add(admissionDefaults.heldBytesMax / 2);
  const read = (bytes: number, headers = {}) => {
    const held = admission.hold("ann");
    const body = streamOf(new Uint8Array(bytes - 1), new Uint8Array(1));
    return failureOf(readBody(requestOf(body, headers), held));
  };
  const overloaded = { code: "unavailable" };
  expect(await read(smallBodyBytes)).toBe("read");
  expect(await read(smallBodyBytes + 1)).toMatchObject(overloaded);
  expect(await read(9_999, { "content-length": "9999" })).toMatchObject(overloaded);
  full[Symbol.dispose]();
  expect(await read(9_999, { "content-length": "9999" })).toBe("read");
});
