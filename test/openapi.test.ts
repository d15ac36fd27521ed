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
import { ApiDocument, type Document } from "./contract/documented-responses.ts";
import { openService } from "./contract/garden.ts";

const service = openService("SQLite");

const document: Document = createOpenApi({ version, basePath: "" });

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
    const sent = await (await service.fetch("GET /openapi.json")).json();
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

  test("names its license and its server, and explains every problem type", async () => {
    const { info, servers } = createOpenApi({ version, basePath: "/v1" }) as Document;
    expect(info.license).toEqual({ name: "MIT", identifier: "MIT" });
    expect(servers).toEqual([{ url: "/v1", description: expect.any(String) }]);
    const page = await Bun.file(join(import.meta.dir, "../docs/interface.md")).text();
    const listed = [...info.description.matchAll(/^- `([\w-]+)` \((\d+)\)/gm)];
    const expected = Object.entries(problemInfo).map(([code, { status }]) => [code, `${status}`]);
    expect(listed.map(([, code, status]) => [code, status])).toEqual(expected);
    const explained = [...page.matchAll(/^\| (\d{3}) \| `([\w-]+)` \|/gm)];
    expect(explained.map(([, status, code]) => [code, status])).toEqual(expected);
  });

  test("has examples that fit its own schemas", () => {
    const api = new ApiDocument(document);
    const check = (part: Document): void => {
      if (typeof part !== "object" || part === null) return;
      const { schema, examples = {}, example } = part;
      const values = Object.values(examples).map((each) => (each as { value: unknown }).value);
      if (example !== undefined) values.push(example);
      if (schema) for (const value of values) api.validate(schema, value);
      for (const each of Object.values(part)) check(each);
    };
    check(document);
  });
});
