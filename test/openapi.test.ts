/** Holds the live service against its own OpenAPI document, and the document against the rules. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  BaseResolver,
  createConfig,
  lintDocument,
  makeDocumentFromString,
} from "@redocly/openapi-core";
import { errorCodes } from "../src/domain/errors.ts";
import { createOpenApi } from "../src/http/openapi.ts";
import { operations } from "../src/http/operations.ts";
import { version } from "../src/version.ts";
import { type Document, DocumentedAnswers } from "./documented-answers.ts";
import { openWorld } from "./scenarios/scenario.ts";

const world = openWorld("SQLite");
const limited = openWorld("SQLite", {
  usage: { rate: { requests: 2, windowSeconds: 86_400 }, plantsMax: 1 },
});

// biome-ignore lint/suspicious/noExplicitAny: the document is walked as the JSON that it is.
const document = createOpenApi({ version, basePath: "" }) as any;
const documented = new DocumentedAnswers(document);

async function checkResponse(path: string, method: string, response: Response): Promise<void> {
  const { status, headers } = response;
  const header = (name: string) => headers.get(name) ?? undefined;
  const answer = { status, header, text: await response.text() };
  expect(documented.findFault(path, method, answer)).toBeUndefined();
}

function validate(schema: object, value: unknown): void {
  expect(documented.findMismatch(schema, value)).toBeUndefined();
}

describe("the OpenAPI document", () => {
  test("passes the recommended rules of Redocly", async () => {
    const config = await createConfig({
      extends: ["recommended-strict"],
      rules: {
        // The service has no address of its own: it is wherever its user starts it.
        "no-server-example.com": "off",
        "operation-4xx-response": "error",
      },
    });
    const source = makeDocumentFromString(JSON.stringify(document), "openapi.json");
    const problems = await lintDocument({
      document: source,
      config,
      externalRefResolver: new BaseResolver(),
    });
    expect(
      problems.map(({ ruleId, message, location }) => [ruleId, message, location[0]?.pointer]),
    ).toEqual([]);
  });

  test("is what the service sends, with the version of the package", async () => {
    const sent = await (await world.fetch("GET /openapi.json")).json();
    expect(sent).toEqual(JSON.parse(JSON.stringify(document)));
    expect(sent).toMatchObject({ openapi: "3.1.0", info: { version } });
  });

  test("describes every operation and no other", () => {
    const described = Object.entries(document.paths as Record<string, object>).flatMap(
      ([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const served = operations.map(({ method, path }) => `${method} ${path}`);
    expect(described.toSorted()).toEqual(served.toSorted());
  });

  test("names its licence and its server, and explains every problem type", async () => {
    const { info, servers, components } = createOpenApi({ version, basePath: "/v1" }) as Document;
    expect(info.license).toEqual({ name: "MIT", identifier: "MIT" });
    expect(servers).toEqual([{ url: "/v1", description: expect.any(String) }]);
    expect(components.schemas.Problem.externalDocs.url).toBe("/v1/docs#description/errors");
    const page = await Bun.file(join(import.meta.dir, "../docs/problems.md")).text();
    const sections = page.split(/^## /m).slice(1);
    const listed = [...info.description.matchAll(/^- `([\w-]+)` \((\d+)\)/gm)];
    const expected = Object.entries(errorCodes).map(([code, { status }]) => [code, String(status)]);
    expect(listed.map(([, code, status]) => [code, status])).toEqual(expected);
    const headed = sections.map((section) => /^([\w-]+)\n\n\*\*(\d+)\.\*\*/.exec(section));
    expect(headed.map((match) => match?.slice(1))).toEqual(expected);
  });

  test("has 403 where a token that may only read is refused, and nowhere else", () => {
    const forbidden = operations.filter(({ method, path }) => {
      return "403" in document.paths[path][method.toLowerCase()].responses;
    });
    expect(forbidden.map(({ name }) => name)).toEqual(["createPlant", "deletePlant"]);
  });

  test("has examples that fit its own schemas", () => {
    const check = (part: unknown): void => {
      if (typeof part !== "object" || part === null) return;
      const { schema, examples, example } = part as {
        schema?: object;
        examples?: Record<string, { value: unknown }>;
        example?: unknown;
      };
      for (const each of Object.values(examples ?? {})) if (schema) validate(schema, each.value);
      if (schema && example !== undefined) validate(schema, example);
      for (const value of Object.values(part)) check(value);
    };
    check(document);
  });
});

describe("the live service answers as documented", () => {
  const requests: readonly [path: string, request: string, body?: object | string][] = [
    ["/plants", "POST /plants", { name: "Fern", tag: "shade", id: 7 }],
    ["/plants", "POST /plants", { name: "Fern", id: 7 }],
    ["/plants", "POST /plants", { name: "" }],
    ["/plants", "POST /plants", "x".repeat(70_000)],
    ["/plants", "GET /plants"],
    ["/plants", "GET /plants?limit=0"],
    ["/plants", "GET /plants?fields=id,name,tag"],
    ["/plants", "GET /plants?limit=x"],
    ["/plants/{id}", "DELETE /plants/7"],
    ["/plants/{id}", "DELETE /plants/7"],
    ["/plants/{id}", "DELETE /plants/x"],
    ["/openapi.json", "GET /openapi.json"],
    ["/healthz", "GET /healthz"],
    ["/healthz", "GET /healthz?x"],
    ["/readyz", "GET /readyz"],
    ["/metrics", "GET /metrics"],
  ];

  test("to valid and invalid requests, to readers and to strangers", async () => {
    const write = await world.makeToken({ user: "alice" });
    const read = await world.makeToken({ user: "alice", scope: "read" });
    for (const [path, request, body] of requests) {
      for (const token of [write, read, "unknown"]) {
        const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
        const text = typeof body === "object" ? JSON.stringify(body) : body;
        const response = await world.fetch(request, text ? { headers, body: text } : { headers });
        await checkResponse(path, request.split(" ")[0]?.toLowerCase() ?? "", response);
      }
    }
  });

  test("to a wrong media type, a used key, and a storage that is gone", async () => {
    const token = await world.makeToken({ user: "bob" });
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const create = (more: object, body: string) =>
      world.fetch("POST /plants", { headers: { ...headers, ...more }, body });
    await checkResponse("/plants", "post", await create({ "content-type": "text/plain" }, "{}"));
    const key = { "idempotency-key": "k" };
    await checkResponse("/plants", "post", await create(key, '{"name":"a"}'));
    await checkResponse("/plants", "post", await create(key, '{"name":"a"}'));
    await checkResponse("/plants", "post", await create(key, '{"name":"b"}'));
  });

  test("to whoever has reached a limit", async () => {
    const token = await limited.makeToken({ user: "carol" });
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    for (const status of [201, 507, 429]) {
      const response = await limited.fetch("POST /plants", { headers, body: '{"name":"a"}' });
      expect(response.status).toBe(status);
      expect(response.headers.has("ratelimit-policy")).toBe(true);
      await checkResponse("/plants", "post", response);
    }
  });
});
