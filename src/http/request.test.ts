/** What is read of a request: target, host, token, id, query. */
import { describe, expect, test } from "bun:test";
import { makeToken } from "../auth/opaque-token.ts";
import { Admission } from "./admission.ts";
import type { Exchange } from "./exchange.ts";
import { operations } from "./operations.ts";
import { checkHost, createRequestIds, readBearerToken, readInput, readTarget } from "./request.ts";

describe("the target", () => {
  test.each([
    ["http://localhost/plants", "/plants", ""],
    ["http://localhost:8080/", "/", ""],
    ["http://[::1]:8080/plants/7", "/plants/7", ""],
    ["http://localhost/plants?limit=1&after=2", "/plants", "limit=1&after=2"],
    ["http://localhost/plants?", "/plants", ""],
    ["http://localhost/plants?a=/b?c", "/plants", "a=/b?c"],
    ["http://localhost/plants??a", "/plants", "?a"],
    ["http://localhost/%zz?%zz", "/%zz", "%zz"],
    ["http://localhost//x://y", "//x://y", ""],
    ["/plants?limit=1", "/plants", "limit=1"],
    ["/a://b", "/a://b", ""],
    ["https://a.example/v1/plants", "/v1/plants", ""],
    ["https://a.example", "/", ""],
  ])("%s has the path %s and the query %p", (url, path, query) => {
    expect(readTarget(url)).toEqual({ path, query });
  });
});

describe("the header Host", () => {
  test.each([
    "localhost",
    "localhost:8080",
    "LOCALHOST:0",
    "plants.example.org",
    "127.0.0.1:65535",
    "[::1]",
    "[2001:db8::1]:443",
    "xn--bcher-kva.example",
    "a_b.example",
  ])("may be %s", (host) => {
    expect(() => checkHost(new Headers({ host }).get("host"))).not.toThrow();
  });

  test.each([
    "",
    "a b",
    "a, b",
    "a,b",
    "user@host",
    "host/path",
    "host?x",
    "host#x",
    "host:port",
    "host:80:80",
    "host:123456",
    ":80",
    "[::1",
    "::1",
    "[zz]",
    "http://host",
    "a\\b",
    "<a>",
  ])("is refused as %p", (host) => {
    const check = () => checkHost(new Headers({ host }).get("host"));
    expect(check).toThrow(
      expect.objectContaining({
        code: "invalid-request",
        errors: [{ header: "Host", detail: expect.any(String) }],
      }),
    );
  });
});

describe("the bearer token", () => {
  const tokenAfter = (spaces: number) =>
    readBearerToken(new Headers({ authorization: `Bearer${" ".repeat(spaces)}plant_x` }));

  test("may come after up to 16 spaces; more are part of a token that nobody has", () => {
    expect(tokenAfter(16)).toBe("plant_x");
    expect(tokenAfter(17)).toBe(" plant_x");
  });
});

describe("the request id", () => {
  const form = /^[A-Za-z0-9._-]{1,128}$/;

  test("keeps the caller's own id, also one that begins like a token", () => {
    const id = makeToken().slice(0, 25);
    expect(createRequestIds()(new Headers({ "X-Request-Id": id }))).toBe(id);
  });

  test.each([
    ["that is a token", makeToken()],
    ["that holds a token", `Bearer-${makeToken()}`],
    ["that is most of a token", makeToken().slice(0, 26)],
  ])("gives a new id instead of one %s", (_case, id) => {
    const given = createRequestIds()(new Headers({ "X-Request-Id": id }));
    expect(given).not.toBe(id);
    expect(given).toMatch(form);
  });

  test("gives every request another id, also from another process", () => {
    const processes = [createRequestIds(), createRequestIds()];
    const ids = processes.flatMap((next) => Array.from({ length: 500 }, () => next(new Headers())));
    expect(new Set(ids).size).toBe(1000);
    for (const id of ids) expect(id).toMatch(form);
  });
});

describe("the query of a list", () => {
  const listPlants = operations.find((operation) => operation.name === "listPlants");

  async function read(query: string): Promise<unknown> {
    if (!listPlants) throw new Error("There is no operation listPlants.");
    const request = new Request("http://localhost/plants");
    const exchange = { request, query, variable: "", body: "none" } as Exchange;
    return readInput(listPlants, exchange, new Admission());
  }

  test("with a parameter three times is refused with one error", async () => {
    await expect(read("limit=1&limit=2&limit=3")).rejects.toMatchObject({
      message: "limit must be given at most once.",
      errors: [{ parameter: "limit", detail: "must be given at most once." }],
    });
  });

  test("of thousands of parameters is refused with a bounded number of errors", async () => {
    const query = Array.from({ length: 3_000 }, (_, index) => `a${index}`).join("&");
    await expect(read(query)).rejects.toMatchObject({
      message: "a0 is not a parameter of this operation (and 99 more; see errors).",
      errors: { length: 100 },
    });
  });
});
