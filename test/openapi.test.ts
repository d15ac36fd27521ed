/** The OpenAPI document is valid and complete. Every test of test/contract/ compares with it. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  BaseResolver,
  createConfig,
  lintDocument,
  makeDocumentFromString,
} from "@redocly/openapi-core";
import { createOpenApi } from "../src/http/openapi.ts";
import { operations } from "../src/http/operations.ts";
import { problemInfo } from "../src/http/problem.ts";
import { version } from "../src/version.ts";
import { type Document, DocumentedAnswers } from "./documented-responses.ts";
import { openWorld } from "./scenarios/scenario.ts";

const world = openWorld("SQLite");
const limited = openWorld("SQLite", {
  usage: { rate: { requests: 4, windowSeconds: 86_400 }, plantsMax: 1 },
});
const quota = openWorld("SQLite", { usage: { rate: undefined, plantsMax: 2 } });

// biome-ignore lint/suspicious/noExplicitAny: the document is walked as the JSON that it is.
const document = createOpenApi({ version, basePath: "" }) as any;
const documented = new DocumentedAnswers(document);

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
    const served = operations.flatMap(({ method, path }) =>
      (method === "GET" ? ["GET", "HEAD"] : [method]).map((each) => `${each} ${path}`),
    );
    expect(described.toSorted()).toEqual(served.toSorted());
  });

  test("names its license and its server, and explains every problem type", async () => {
    const { info, servers } = createOpenApi({ version, basePath: "/v1" }) as Document;
    expect(info.license).toEqual({ name: "MIT", identifier: "MIT" });
    expect(servers).toEqual([{ url: "/v1", description: expect.any(String) }]);
    const page = await Bun.file(join(import.meta.dir, "../docs/interface.md")).text();
    const listed = [...info.description.matchAll(/^- `([\w-]+)` \((\d+)\)/gm)];
    const expected = Object.entries(problemInfo).map(([code, { status }]) => [
      code,
      String(status),
    ]);
    expect(listed.map(([, code, status]) => [code, status])).toEqual(expected);
    const explained = [...page.matchAll(/^\| (\d{3}) \| `([\w-]+)` \|/gm)];
    expect(explained.map(([, status, code]) => [code, status])).toEqual(expected);
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

/** Status and body of a response, which must be as documented. */
async function read(path: string, response: Response): Promise<{ status: number; text: string }> {
  const { status, headers } = response;
  const header = (name: string) => headers.get(name) ?? undefined;
  const answer = { status, header, text: await response.text() };
  expect(documented.findFault(path, "post", answer)).toBeUndefined();
  return answer;
}

test("the results of a bulk are as documented", async () => {
  const headers = {
    authorization: `Bearer ${await quota.makeToken({ user: "dora" })}`,
    "content-type": "application/json",
    "idempotency-key": "k",
  };
  const post = async (...plants: string[]) => {
    const response = await quota.fetch("POST /plants/bulk", { headers, body: `[${plants}]` });
    const { text } = await read("/plants/bulk", response);
    return [...text.matchAll(/"status":(\d+)/g)].map(([, status]) => Number(status));
  };
  const fern = '{"name":"Fern","id":9007199254740993}';
  const [moss, ivy] = ['{"name":"Moss"}', '{"name":"Ivy"}'];
  expect(await post(fern, fern, moss)).toEqual([201, 409, 201]);
  expect(await post(fern, ivy, ivy)).toEqual([201, 507, 422]);
  expect(await post(fern, "{}")).toEqual([400]);
});

test("responses for a used key, a full garden and too many requests are as documented", async () => {
  const token = await limited.makeToken({ user: "carol" });
  for (const [name, key, status] of [
    ["Fern", "k", 201],
    ["Fern", "k", 201],
    ["Moss", "k", 422],
    ["Moss", "other", 507],
    ["Moss", "other", 429],
  ] as const) {
    const headers = { "idempotency-key": key };
    const response = await limited.call(token, "POST /plants", { name }, headers);
    expect(response.headers.has("ratelimit-policy")).toBe(true);
    expect((await read("/plants", response)).status).toBe(status);
  }
});
