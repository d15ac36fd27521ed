/** Responses as they come over the wire. */
import { expect, test } from "bun:test";
import { NoResponse, parseResponse } from "./wire.ts";

function readChunked(body: string) {
  const bytes = Buffer.from(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`);
  return parseResponse(bytes, { isHead: false, isEnded: true });
}

test("a body in chunks is put together", () => {
  const response = readChunked("3\r\nFer\r\n1;last\r\nn\r\n0\r\n\r\n");
  expect(response).toMatchObject({ status: 200, body: Buffer.from("Fern") });
});

test.each(["-9\r\n", "-1\r\n\r\n", "x\r\n", "\r\n", "fffffffff\r\n"])(
  "a chunk whose size is %j ends nothing, and begins nothing anew",
  (body) => {
    expect(readChunked(body)).toBeInstanceOf(NoResponse);
  },
);
