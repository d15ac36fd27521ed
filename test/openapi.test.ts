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
import { bearer, openService } from "./contract/garden.ts";

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

  test("describes exactly the idempotency keys that the service takes", async () => {
    const token = await service.makeToken({ user: "ann" });
    const { parameters } = document.paths["/plants"].post;
    const { schema } = parameters.find(({ name }: Document) => name === "Idempotency-Key");
    const pattern = new RegExp(schema.pattern);
    const taken = ["k", 'a"', 'a"b"', "a\\", '"k"', '"a b"', '" "', '"\\""', '"\\\\"'];
    const refused = ["", "a b", '"', '""', '"a', '"a"b', '"a"b"', '"\\a"', '"\\"', "\u00e9"];
    for (const length of [255, 256]) {
      const [bare, escaped] = ["~".repeat(length), '\\"'.repeat(length)];
      (length === 255 ? taken : refused).push(bare, `"${bare}"`, `"${escaped}"`);
    }
    for (const key of [...taken, ...refused]) {
      const status = taken.includes(key) ? 201 : 400;
      const body = JSON.stringify({ name: "Fern" });
      const type = { "Content-Type": "application/json", "Idempotency-Key": key };
      const headers = { ...type, ...bearer(token) };
      const reply = await service.fetch("POST /plants?include=id", { body, headers });
      expect([key, reply.status, pattern.test(key)]).toEqual([key, status, status === 201]);
    }
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
