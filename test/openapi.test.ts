/** The OpenAPI document is valid and complete. Every test of test/contract/ compares with it. */
import { beforeAll, describe, expect, test } from "bun:test";
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
const { paths, components } = document;

const fern = JSON.stringify({ name: "Fern" });

/** The parameter of an operation that has this name. */
function findParameter(operation: Document, name: string): Document {
  return operation.parameters.find((parameter: Document) => parameter.name === name);
}

/** Calls `visit` with each object and array of the document. */
function visitParts(part: Document, visit: (part: Document) => void): void {
  if (typeof part !== "object" || part === null) return;
  visit(part);
  for (const child of Object.values(part)) visitParts(child, visit);
}

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

    const found = problems.map(({ message, location }) => ({
      message,
      pointer: location[0]?.pointer,
    }));
    expect(found).toEqual([]);
  });

  test("is what the service sends", async () => {
    const sent = await service.fetch("GET /openapi.json");

    expect(await sent.json()).toEqual(JSON.parse(JSON.stringify(document)));
  });

  test("has the service's version, license and base path", () => {
    expect(document).toMatchObject({
      openapi: "3.1.0",
      info: { version, license: { identifier: "MIT" } },
      servers: [{ url: "/v1" }],
    });
  });

  test("lists the problem types that docs/interface.md explains", async () => {
    const page = await Bun.file(join(import.meta.dir, "../docs/interface.md")).text();
    const explained = [...page.matchAll(/^\| (\d{3}) \| `([\w-]+)` \|/gm)];
    const listed = [...document.info.description.matchAll(/^- `([\w-]+)` \((\d+)\)/gm)];

    const explainedTypes = explained.map(([, status, code]) => ({ status, code }));
    const listedTypes = listed.map(([, code, status]) => ({ status, code }));
    expect(listedTypes).not.toBeEmpty();
    expect(listedTypes).toEqual(explainedTypes);
  });

  test("groups its operations", () => {
    const groups: Record<string, string[]> = {};
    for (const { name } of document.tags) groups[name] = [];
    for (const path of Object.values<Document>(paths)) {
      for (const { operationId, tags } of Object.values<Document>(path)) {
        groups[tags.join()]?.push(operationId);
      }
    }

    expect(groups).toEqual({
      plants: ["createPlant", "listPlants", "getPlant", "putPlant", "patchPlant", "deletePlant"],
      bulk: ["createPlants", "updatePlants", "deletePlants"],
      tags: ["listTags"],
      events: ["listEvents"],
      token: ["getMe"],
    });
  });

  test("has bounds for what is bounded", () => {
    const { Deletions, Updates, EventList, Me } = components.schemas;

    expect(Deletions.properties.missing.maxItems).toBe(10_000);
    expect(Updates.properties.missing.maxItems).toBe(10_000);
    expect(EventList.maxItems).toBe(1_000);
    expect(Me.properties.garden).toMatchObject({ minLength: 1, maxLength: 255 });
  });

  test("has examples that fit its own schemas", () => {
    const api = new ApiDocument(document);
    let examplesCount = 0;

    visitParts(api.document, (part) => {
      if (!part.schema || !("example" in part)) return;
      examplesCount++;
      api.validate(part.schema, part.example);
    });

    expect(examplesCount).toBeGreaterThan(0);
  });
});

test("every request that the OpenAPI document shows as an example can be sent as it is", async () => {
  const token = bearer(await service.makeToken({ user: "abe" }));
  const statuses: Record<string, number> = {};
  for (const [path, operations] of Object.entries<Document>(paths)) {
    for (const [method, operation] of Object.entries<Document>(operations)) {
      const target = path.includes("{id}")
        ? path.replace("{id}", findParameter(operation, "id").example)
        : path;
      const body = operation.requestBody?.content["application/json"].example;
      const request = `${method.toUpperCase()} ${target}`;
      const { status } = await service.fetch(request, {
        headers: body ? { ...token, "Content-Type": "application/json" } : token,
        body: body && JSON.stringify(body),
      });
      statuses[request] = status;
    }
  }

  expect(statuses).toEqual({
    "POST /plants": 201,
    "GET /plants": 200,
    "GET /plants/7": 404,
    "PUT /plants/7": 201,
    "PATCH /plants/7": 200,
    // The examples of deletions name plants that the service never makes.
    "DELETE /plants/9000000000000000": 404,
    "POST /plants/bulk": 200,
    "POST /plants/bulk-update": 200,
    "POST /plants/bulk-delete": 200,
    "GET /tags": 200,
    "GET /events": 200,
    "GET /me": 200,
  });
});

describe("for an idempotency key, the OpenAPI document", () => {
  let token: string;
  beforeAll(async () => {
    token = await service.makeToken({ user: "ann" });
  });

  const { schema } = findParameter(paths["/plants"].post, "Idempotency-Key");
  const documented = new RegExp(schema.pattern);

  async function createWithKey(key: string): Promise<number> {
    const headers = {
      ...bearer(token),
      "Content-Type": "application/json",
      "Idempotency-Key": key,
    };
    const { status } = await service.fetch("POST /plants?include=id", { body: fern, headers });
    return status;
  }

  test.each(["k", 'a"', 'a"b"', "a\\", '"k"', '"a b"', '" "', '"\\""', '"\\\\"'])(
    "allows %j, as the service does",
    async (key) => {
      expect(await createWithKey(key)).toBe(201);
      expect(key).toMatch(documented);
    },
  );

  test.each(["", "a b", '"', '""', '"a', '"a"b', '"a"b"', '"\\a"', '"\\"', "\u00e9"])(
    "forbids %j, as the service does",
    async (key) => {
      expect(await createWithKey(key)).toBe(400);
      expect(key).not.toMatch(documented);
    },
  );

  test.each([
    { form: "a bare key", write: (length: number) => "~".repeat(length) },
    { form: "a quoted key", write: (length: number) => `"${"~".repeat(length)}"` },
    { form: "a key of escaped quotes", write: (length: number) => `"${'\\"'.repeat(length)}"` },
  ])("allows $form of 255 characters and no more, as the service does", async ({ write }) => {
    expect(await createWithKey(write(255))).toBe(201);
    expect(write(255)).toMatch(documented);

    expect(await createWithKey(write(256))).toBe(400);
    expect(write(256)).not.toMatch(documented);
  });
});

describe("for a stream of events, the OpenAPI document", () => {
  const operation = paths["/events"].get;
  /** The first event of a stream, as it is sent. */
  let sent: { type: string; data: string };

  beforeAll(async () => {
    const token = bearer(await service.makeToken({ user: "bea" }));
    await service.fetch("POST /plants", {
      headers: { ...token, "Content-Type": "application/json" },
      body: fern,
    });
    const response = await service.fetch("GET /events?after=0", {
      headers: { ...token, Accept: "text/event-stream" },
    });
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (/^data: .*\n\n/m.test(text)) break;
    }
    const [, type = "", data = ""] = /^event: (.*)\ndata: (.*)\n\n/m.exec(text) ?? [];
    sent = { type, data };
  });

  test("has a schema, which an event that is sent fits", () => {
    const { schema } = operation.responses["200"].content["text/event-stream"];
    expect(schema.$ref).toEndWith("/EventStream");

    const event = JSON.parse(sent.data);
    expect(event.type).toBe(sent.type);
    expect(event.user).toBe("bea");
    const api = new ApiDocument(document);
    api.validate(api.document.components.schemas.EventStream, [event]);
  });

  test("shows the lines of an event as they are sent", () => {
    expect(sent.data).toStartWith('{"seq":');
    expect(operation.description).toContain(`event: ${sent.type}\ndata: {"seq":`);
  });
});

describe("for lists of values, the OpenAPI document", () => {
  test("closes only scopes, orders and what to include, which will not grow", () => {
    const closed = new Set<string>();
    visitParts(document, (part) => {
      if ("enum" in part) closed.add(part.enum.join());
    });

    expect([...closed].toSorted()).toEqual(["asc,desc", "id", "read,write"]);
  });

  test("explains the types of events, and has them as examples", () => {
    const { type } = components.schemas.Event.properties;

    expect(type.examples).toEqual(["plant.created", "plant.replaced", "plant.deleted"]);
    expect(type.description).toContain("`plant.created`");
    expect(type.description).toContain("`plant.replaced`");
    expect(type.description).toContain("`plant.deleted`");
  });

  test("has the statuses of a bulk's results as examples", () => {
    const { status } = components.schemas.Result.properties;

    expect(status.examples).toEqual([201, 409, 422, 507]);
  });

  test("has types of problems as examples", () => {
    const { type } = components.schemas.Problem.properties;

    expect(type.examples).toContain("urn:plantstore:problem:gone");
  });
});

describe("for a search, the OpenAPI document", () => {
  let headers: Record<string, string>;
  beforeAll(async () => {
    headers = bearer(await service.makeToken({ user: "cleo" }));
  });

  const { schema, description } = findParameter(paths["/plants"].get, "q");
  const fitsSchema = (words: string) =>
    words.length >= schema.minLength && new RegExp(schema.pattern).test(words);
  const search = async (words: string) =>
    (await service.fetch(`GET /plants?q=${encodeURIComponent(words)}`, { headers })).status;

  test.each(["fern", "´ fern"])("allows the words %j, as the service does", async (words) => {
    expect(await search(words)).toBe(200);
    expect(fitsSchema(words)).toBe(true);
  });

  test.each(["", " \t", "\u0085"])(
    "forbids the blank words %j, as the service does",
    async (words) => {
      expect(await search(words)).toBe(400);
      expect(fitsSchema(words)).toBe(false);
    },
  );

  test("says that words of accents only are refused, because no pattern knows them all", async () => {
    expect(await search("´")).toBe(400);
    expect(description).toContain("`´`");
  });
});
