/** What the contract table cannot see of requests: kept connections, and a list of origins. */
import { describe, expect, test } from "bun:test";
import { checkHeaders, openWorld } from "./scenario.ts";

const world = openWorld("SQLite");
const based = openWorld("SQLite", { basePath: "/v1" });

describe("a connection", () => {
  async function connectionAfter(body: string, token?: string): Promise<string | null> {
    const headers = {
      "content-type": "application/json",
      ...(token && { authorization: `Bearer ${token}` }),
    };
    return (await world.fetch("POST /plants", { headers, body })).headers.get("connection");
  }

  test("is kept after a body that was read, whatever was wrong with it", async () => {
    const token = await world.makeToken({ user: "alice" });
    expect(await connectionAfter('{"name":""}', token)).toBeNull();
    expect(await connectionAfter('{"name":"Fern"}', token)).toBeNull();
  });

  test("is closed after a body that was not read", async () => {
    const token = await world.makeToken({ user: "alice" });
    expect(await connectionAfter("x".repeat(70_000), token)).toBe("close");
    expect(await connectionAfter("x".repeat(70_000))).toBe("close");
  });
});

test("an error of many says how many more there are", async () => {
  const names = Array.from({ length: 150 }, (_, index) => `a${index}`).join("&");
  const problem = await (await world.fetch(`GET /healthz?${names}`)).json();
  expect(problem).toMatchObject({
    detail: "a0 is not a parameter of this operation. (and 149 more; see errors)",
  });
});

describe("with a list of origins", () => {
  const strict = openWorld("SQLite", { corsOrigins: ["https://a.example", "https://b.example"] });

  test("a service lets these read and no others, and says that it depends", async () => {
    const ask = async (headers: HeadersInit) =>
      (await strict.fetch("OPTIONS /plants", { headers })).headers;
    const good = await ask({ origin: "https://b.example" });
    checkHeaders(good, { "Access-Control-Allow-Origin": "https://b.example", Vary: "Origin" });
    const bad = await ask({ origin: "https://evil.example" });
    checkHeaders(bad, { "Access-Control-Allow-Origin": null, Vary: "Origin" });
    checkHeaders(await ask({}), { "Access-Control-Allow-Origin": null, Vary: "Origin" });
  });
});

test("with a base path, nothing is found outside it", async () => {
  for (const path of ["/plants", "/healthz", "/v1", "/v1plants", "/v2/plants"]) {
    expect((await based.fetch(`GET ${path}`)).status).toBe(404);
  }
});
