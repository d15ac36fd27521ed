/**
 * What is read off a request before its operation is known: target, host, token; then its query.
 */
import { describe, expect, test } from "bun:test";
import { Admission } from "./admission.ts";
import { operations } from "./operations.ts";
import { checkHost, readBearerToken, readInput, readTarget } from "./request.ts";

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

  test("is refused when it is missing or there twice", () => {
    const twice = new Headers([
      ["Host", "a"],
      ["Host", "b"],
    ]);
    for (const headers of [new Headers(), twice]) {
      expect(() => checkHost(headers.get("host"))).toThrow(
        expect.objectContaining({ code: "invalid-request" }),
      );
    }
  });
});

describe("the bearer token", () => {
  test.each([[`Bearer${" ".repeat(16)}plant_x`, "plant_x"]])(
    "of %p is %p",
    (authorization, expected) => {
      expect(readBearerToken(new Headers({ authorization }))).toBe(expected);
    },
  );

  test("begins behind 16 spaces, so that no header of many is kept for a short token", () => {
    const authorization = `Bearer${" ".repeat(1_000)}plant_x`;
    expect(readBearerToken(new Headers({ authorization }))).toHaveLength(991);
  });
});

describe("the query of a list", () => {
  const listPlants = operations.find((operation) => operation.name === "listPlants");

  async function read(query: string): Promise<unknown> {
    if (!listPlants) throw new Error("There is no operation listPlants.");
    const request = new Request("http://localhost/plants");
    const arrival = { request, query, variable: "", body: "none", caller: undefined } as const;
    try {
      return (await readInput(listPlants, { ...arrival }, new Admission())).parameters;
    } catch (error) {
      const { errors } = error as { errors: { parameter: string }[] };
      return errors.map((fault) => fault.parameter);
    }
  }

  test("is read behind any number of blanks between its parameters", async () => {
    expect(await read(`${"&".repeat(15_000)}limit=5&&after=3`)).toEqual({ limit: 5n, after: 3n });
  });

  test("is looked at up to a bound, beyond which there are errors anyway", async () => {
    if (!listPlants) throw new Error("There is no operation listPlants.");
    const request = new Request("http://localhost/plants");
    const arrival = { request, variable: "", body: "none", caller: undefined } as const;
    const countFaults = (parameters: number) => {
      const query = Array.from({ length: parameters }, (_, index) => `a${index}`).join("&");
      const read = () => readInput(listPlants, { ...arrival, query }, new Admission());
      return Promise.try(read).catch((error) => Number(/and (\d+) more/.exec(error.message)?.[1]));
    };
    expect(await countFaults(300)).toBe(299);
    expect(await countFaults(301)).toBe(299);
    expect(await countFaults(3_000)).toBe(299);
  });
});
