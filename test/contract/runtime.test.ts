/** What docs/interface.md says of Bun, the runtime, which could differ in its next version. */
import { afterAll, describe, expect, test } from "bun:test";
import { startService } from "../../testing/running-service.ts";
import { openSockets } from "./raw-requests.ts";

const service = await startService();
afterAll(() => service[Symbol.asyncDispose]());
const { authorization, send } = openSockets(service);

const json = "Content-Type: application/json";
const chunked = "Transfer-Encoding: chunked";
const close = "Connection: close";
/** Has 15 bytes, which is `f` as the size of a chunk. */
const fern = '{"name":"Fern"}';

describe("the runtime", () => {
  test.each([
    { what: "a line break", more: "\r\n" },
    { what: "another request", more: "GET /me HTTP/1.1\r\nHost: a\r\n\r\n" },
  ])(
    "closes the connection if $what follows a write, and a key finds out if it was stored",
    async ({ what, more }) => {
      let stored = 0;
      for (let time = 0; time < 10; time++) {
        const name = `${what} ${time}`;
        const body = JSON.stringify({ name });
        const create = ["POST /plants HTTP/1.1", "Host: a", authorization, json];
        const key = `Idempotency-Key: "${name}"`;
        const length = `Content-Length: ${body.length}`;

        const lost = await send(...create, key, length, "", body + more);
        const retry = await send(...create, key, length, close, "", body);

        expect(lost).not.toContain("201");
        expect(retry).toStartWith("HTTP/1.1 201");
        const found = await service.call(`GET /plants?q=${encodeURIComponent(name)}`);
        expect(await found.json()).toHaveLength(1);
        if (/^idempotency-replayed: true\r$/im.test(retry)) stored++;
      }
      expect(stored).toBeGreaterThan(0);
    },
  );

  test("sends a 100 to an HTTP/1.0 client that expects it", async () => {
    const response = await send(
      "POST /plants HTTP/1.0",
      "Host: a",
      authorization,
      json,
      "Content-Length: 15",
      "Expect: 100-continue",
      "",
      fern,
    );
    expect(response).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 /);
  });

  test("sends a 100 before the token is checked", async () => {
    const response = await send(
      "POST /plants HTTP/1.1",
      "Host: a",
      close,
      json,
      "Content-Length: 15",
      "Expect: 100-continue",
      "",
      fern,
    );
    expect(response).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 401 /);
  });

  test("ignores the extension of a chunk", async () => {
    const head = ["POST /plants HTTP/1.1", "Host: a", close, authorization, json, chunked, ""];
    const response = await send(...head, 'f;a="b";c', fern, "0", "", "");
    expect(response).toStartWith("HTTP/1.1 201");
  });

  test.each(['f;a="b c"', "f ;a=b"])(
    "refuses an extension of a chunk with a space: %s",
    async (firstLine) => {
      const head = ["POST /plants HTTP/1.1", "Host: a", close, authorization, json, chunked, ""];
      const response = await send(...head, firstLine, fern, "0", "", "");
      expect(response).toStartWith("HTTP/1.1 400");
    },
  );

  const moss = '{"name":"Moss"}';
  const createMoss = ["POST /plants HTTP/1.1", "Host: a", authorization, json];
  test.each([
    {
      what: "a line break before a request",
      status: 400,
      lines: ["", "GET /me HTTP/1.1", "Host: a", "", ""],
    },
    { what: "a bare line feed", status: 505, lines: ["GET /me HTTP/1.1\nHost: a\n\n"] },
    {
      what: "a folded header",
      status: 400,
      lines: ["GET /me HTTP/1.1", "Host: a", "X: a", " b", "", ""],
    },
    {
      what: "a space before a colon",
      status: 400,
      lines: ["GET /me HTTP/1.1", "Host: a", "X : y", "", ""],
    },
    { what: "NUL", status: 400, lines: ["GET /me HTTP/1.1", "Host: a", "X: a\0b", "", ""] },
    { what: "another version", status: 505, lines: ["GET /me HTTP/2.0", "Host: a", "", ""] },
    {
      what: "17 KB of headers",
      status: 431,
      lines: ["GET /me HTTP/1.1", "Host: a", `X: ${"x".repeat(17_000)}`, "", ""],
    },
    {
      what: "199 headers",
      status: 431,
      lines: ["GET /me HTTP/1.1", "Host: a", ...Array(198).fill("X: y"), "", ""],
    },
    {
      what: "a malformed length",
      status: 400,
      lines: ["POST /plants HTTP/1.1", "Host: a", "Content-Length: -1", "", ""],
    },
    {
      what: "a length beside chunks",
      status: 400,
      lines: [...createMoss, "Content-Length: 15", chunked, "", "f", moss, "0", "", ""],
    },
    {
      what: "a trailer",
      status: 400,
      lines: [...createMoss, chunked, "", "f", moss, "0", "X: y", "", ""],
    },
  ])("refuses $what by itself, with a bare $status", async ({ status, lines }) => {
    const response = await send(...lines);

    expect(response).toStartWith(`HTTP/1.1 ${status} `);
    expect(response).toEndWith("\r\n\r\n");
    expect(response).not.toContain("X-Request-Id");
    const found = await service.call("GET /plants?q=moss");
    expect(await found.json()).toEqual([]);
  });

  test("closes the connection on an unknown method", async () => {
    expect(await send("BREW /plants HTTP/1.1", "Host: a", "", "")).toBe("");
  });
});
