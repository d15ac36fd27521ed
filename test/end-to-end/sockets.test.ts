/** Bytes on the wire that no well-behaved client sends, and what comes back. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type RunningService, sendRaw, startService } from "./running-service.ts";

let service: RunningService;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service[Symbol.asyncDispose]());

function request(line: string, headers: readonly string[], body = ""): string {
  const { token } = service;
  const all = [`${line} HTTP/1.1`, `Authorization: Bearer ${token}`, ...headers, "", body];
  return all.join("\r\n");
}

function statusesOf(answer: string): number[] {
  return [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
}

describe("odd requests", () => {
  test.each<[name: string, headers: string[], status: number]>([
    ["no Host", [], 400],
    ["an empty Host", ["Host:"], 400],
    ["two Hosts", ["Host: a", "Host: b"], 400],
    ["the same Host twice", ["Host: a", "Host: a"], 400],
    ["a Host with a path", ["Host: a/b?c"], 400],
    ["two tokens", ["Host: a", "Authorization: Bearer x"], 401],
    ["a plain Host", ["Host: a"], 200],
  ])("with %s", async (_, headers, status) => {
    expect(statusesOf(await sendRaw(service.port, request("GET /plants", headers)))).toEqual([
      status,
    ]);
  });

  test("answers several requests of one connection in their order", async () => {
    const answer = await sendRaw(
      service.port,
      request("GET /plants", ["Host: a"]) +
        request("GET /nothing", ["Host: a"]) +
        request("GET /plants?limit=x", ["Host: a"]),
    );
    expect(statusesOf(answer)).toEqual([200, 404, 400]);
  });

  test("takes a body in chunks", async () => {
    const headers = ["Host: a", "Content-Type: application/json", "Transfer-Encoding: chunked"];
    const answer = await sendRaw(
      service.port,
      request("POST /plants", headers),
      '8\r\n{"name":\r\n',
      '7\r\n"Fern"}\r\n0\r\n\r\n',
    );
    expect(statusesOf(answer)).toEqual([201]);
  });

  test("refuses a declared length over the limit before the body comes, and closes", async () => {
    const headers = ["Host: a", "Content-Type: application/json", "Content-Length: 65537"];
    const answer = await sendRaw(service.port, request("POST /plants", headers, '{"name"'));
    expect(statusesOf(answer)).toEqual([413]);
    expect(answer).toContain("urn:plantstore:problem:too-large");
    expect(answer).toMatch(/^connection: close/im);
  });

  test("does not take a repeated length for a small one", async () => {
    const type = "Content-Type: application/json";
    const body = `{"name":"Fern"${" ".repeat(100_000)}}`;
    const length = `Content-Length: ${body.length}`;
    const twice = request("POST /plants", ["Host: a", type, length, length], body);
    const answer = await sendRaw(service.port, twice);
    expect(statusesOf(answer)).toEqual([400]);
    expect(answer).toMatch(/^connection: close/im);
  });

  test("refuses chunks over the limit without reading on, and takes no rest for a request", async () => {
    const headers = ["Host: a", "Content-Type: application/json", "Transfer-Encoding: chunked"];
    const chunk = `8000\r\n${" ".repeat(0x8000)}\r\n`;
    const answer = await sendRaw(
      service.port,
      request("POST /plants", headers) + chunk + chunk + chunk,
      `${chunk}0\r\n\r\n${request("GET /plants", ["Host: a"])}`,
    );
    expect(statusesOf(answer)).toEqual([413]);
  });

  test("does not take the body of a refused request for the next one", async () => {
    const hidden = request("GET /plants", ["Host: a"]);
    const headers = ["Host: a", "Content-Type: text/plain", `Content-Length: ${hidden.length}`];
    const answer = await sendRaw(service.port, request("POST /plants", headers, hidden));
    expect(statusesOf(answer)).toEqual([415]);
  });

  test("sends no body to HEAD, and the length that GET would have", async () => {
    const answer = await sendRaw(service.port, request("HEAD /healthz", ["Host: a"]));
    expect(answer).toMatch(/^content-length: 3/im);
    expect(answer.endsWith("\r\n\r\n")).toBe(true);
  });
});
