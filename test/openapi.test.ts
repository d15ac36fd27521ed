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
import { version } from "../src/shared/version.ts";
import { ApiDocument, type Document } from "./contract/documented-responses.ts";
import { openService } from "./contract/garden.ts";

const service = openService("SQLite", { basePath: "/v1" });
const document: Document = createOpenApi({ version, basePath: "/v1" });

describe("the OpenAPI document", () => {
  test("passes the recommended rules of Redocly", async () => {
    const config = await createConfig({
      extends: ["recommended-strict"],
      rules: { "operation-4xx-response": "error" },
    });
    const problems = await lintDocument({
      document: makeDocumentFromString(JSON.stringify(document), "openapi.json"),
      config,
      externalRefResolver: new BaseResolver(),
    });
    const found = problems.map(({ message, location }) => [message, location[0]?.pointer]);
    expect(found).toEqual([]);
  });

  test("is what the service sends, with its version, license and base path", async () => {
    const sent = await (await service.fetch("GET /openapi.json")).json();
    expect(sent).toEqual(JSON.parse(JSON.stringify(document)));
    expect(sent).toMatchObject({
      openapi: "3.1.0",
      info: { version, license: { identifier: "MIT" } },
      servers: [{ url: "/v1" }],
    });
  });

  test("has the problem types that docs/interface.md explains", async () => {
    const page = await Bun.file(join(import.meta.dir, "../docs/interface.md")).text();
    const explained = page.matchAll(/^\| (\d{3}) \| `([\w-]+)` \|/gm);
    const listed = document.info.description.matchAll(/^- `([\w-]+)` \((\d+)\)/gm);
    expect(Array.from(listed, ([, code, status]) => [status, code])).toEqual(
      Array.from(explained, ([, status, code]) => [status, code]),
    );
  });

  test("has examples that fit its own schemas", () => {
    const api = new ApiDocument(document);
    const check = (part: Document): void => {
      if (typeof part !== "object" || part === null) return;
      if (part.schema && "example" in part) api.validate(part.schema, part.example);
      for (const each of Object.values(part)) check(each);
    };
    check(api.document);
  });
});
