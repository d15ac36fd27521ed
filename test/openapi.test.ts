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

  test("describes a stream of events, of which each fits its schema", async () => {
    const { content } = document.paths["/events"].get.responses["200"];
    const { schema } = content["text/event-stream"];
    const token = await service.makeToken({ user: "bea" });
    const headers = { ...bearer(token), "Content-Type": "application/json" };
    await service.fetch("POST /plants", { headers, body: '{"name":"Fern"}' });
    const accept = { ...bearer(token), Accept: "text/event-stream" };
    const response = await service.fetch("GET /events?after=0", { headers: accept });
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += new TextDecoder().decode(chunk);
      if (/^data: .*\n\n/m.test(text)) break;
    }
    const [, name, data = ""] = /^event: (.*)\ndata: (.*)\n\n/m.exec(text) ?? [];
    const event = JSON.parse(data);
    expect([event.type, event.user]).toEqual([name, "bea"]);
    const api = new ApiDocument(document);
    api.validate(api.document.components.schemas.EventStream, [event]);
    expect(schema.$ref).toEndWith("/EventStream");
    expect(document.paths["/events"].get.description).toContain(`event: ${name}\ndata: {"seq":`);
  });

  test("closes no list of values that may grow: only scopes, orders and what to include", () => {
    const closed: string[][] = [];
    const look = (part: Document): void => {
      if (typeof part !== "object" || part === null) return;
      if ("enum" in part) closed.push(part.enum);
      for (const each of Object.values(part)) look(each);
    };
    look(document);
    const names = new Set(closed.map((values) => values.join()));
    expect([...names].toSorted()).toEqual(["asc,desc", "id", "read,write"]);
    const { Event, Problem, Result } = document.components.schemas;
    const types = ["plant.created", "plant.replaced", "plant.deleted"];
    expect(Event.properties.type.examples).toEqual(types);
    for (const type of types) expect(Event.properties.type.description).toContain(`\`${type}\``);
    expect(Result.properties.status.examples).toEqual([201, 409, 422, 507]);
    expect(Problem.properties.type.examples).toContain("urn:plantstore:problem:gone");
  });

  test("describes which searches are blank, as the service takes them", async () => {
    const { parameters } = document.paths["/plants"].get;
    const { schema, description } = parameters.find(({ name }: Document) => name === "q");
    const headers = bearer(await service.makeToken({ user: "cleo" }));
    for (const [q, status] of [
      ["fern", 200],
      ["´ fern", 200],
      ["", 400],
      [" \t", 400],
      ["\u0085", 400],
    ] as const) {
      const reply = await service.fetch(`GET /plants?q=${encodeURIComponent(q)}`, { headers });
      const fits = q.length >= schema.minLength && new RegExp(schema.pattern).test(q);
      expect([q, reply.status, fits]).toEqual([q, status, status === 200]);
    }
    // No pattern knows all accents.
    expect((await service.fetch("GET /plants?q=´", { headers })).status).toBe(400);
    expect(description).toContain("`´`");
  });

  test("groups its operations, and has bounds for what is bounded", () => {
    const { paths, tags, components } = document;
    const groups = new Map<string, string[]>(tags.map(({ name }: Document) => [name, []]));
    for (const path of Object.values<Document>(paths)) {
      for (const { operationId, tags } of Object.values<Document>(path)) {
        groups.get(tags.join())?.push(operationId);
      }
    }
    expect(Object.fromEntries(groups)).toEqual({
      plants: ["createPlant", "listPlants", "getPlant", "putPlant", "patchPlant", "deletePlant"],
      bulk: ["createPlants", "updatePlants", "deletePlants"],
      tags: ["listTags"],
      events: ["listEvents"],
      token: ["getMe"],
    });
    const { Deletions, Updates, EventList, Me } = components.schemas;
    for (const { properties } of [Deletions, Updates]) {
      expect(properties.missing.maxItems).toBe(10_000);
    }
    expect(EventList.maxItems).toBe(1_000);
    expect(Me.properties.garden).toMatchObject({ minLength: 1, maxLength: 255 });
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
