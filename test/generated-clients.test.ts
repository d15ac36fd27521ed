/**
 * Clients that others generate from the document: made with the defaults of openapi-typescript and
 * of @hey-api/openapi-ts, type-checked, and run against a live service.
 */
import { afterAll, beforeAll, expect, mock, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ts } from "@ts-morph/common";
import { type RunningService, startService } from "./end-to-end/running-service.ts";

// Both generators build on the compiler's old programming interface, which TypeScript 7 lacks.
mock.module("typescript", () => ({ ...ts, default: ts }));

const root = join(import.meta.dir, "..");
const outputs = join(import.meta.dir, ".output");
let service: RunningService;
/** In the project, so that the programs find openapi-fetch. */
let folder: string;

beforeAll(async () => {
  mkdirSync(outputs, { recursive: true });
  folder = mkdtempSync(join(outputs, "clients-"));
  service = await startService();
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** JSON Lines, as they stand in a program. */
const bulk = JSON.stringify('{"name":"Moss","tag":"shade"}\n{"name":"Ivy","id":7}\n{}\n');

const withOpenApiFetch = `
import createClient from "openapi-fetch";
import type { paths } from "./schema";

export async function run(baseUrl: string, token: string) {
  const client = createClient<paths>({ baseUrl, headers: { Authorization: "Bearer " + token } });
  const created = await client.POST("/plants", { body: { name: "Fern" } });
  const query = { limit: 10, fields: "id,name,tag" };
  const listed = await client.GET("/plants", { params: { query } });
  const id = listed.data?.[0]?.id ?? 0;
  const got = await client.GET("/plants/{id}", { params: { path: { id }, query: { fields: "id" } } });
  const deleted = await client.DELETE("/plants/{id}", { params: { path: { id } } });
  const again = await client.DELETE("/plants/{id}", { params: { path: { id } } });
  const withId = await client.POST("/plants", {
    params: { query: { fields: "id" } },
    body: { name: "Ivy", id: 7 },
  });
  const many = await client.POST("/plants/bulk", {
    headers: { "Content-Type": "application/jsonl" },
    body: ${bulk},
    bodySerializer: (lines) => lines,
    parseAs: "text",
  });
  const tagged = await client.GET("/plants", { params: { query: { tag: "shade" } } });
  const me = await client.GET("/me");
  const user: string | undefined = me.data?.user;
  return {
    created: typeof created.data === "object" ? { ...created.data, name: created.data.name } : {},
    listed: listed.data,
    got: got.data,
    status: deleted.response.status,
    error: again.error?.type,
    withId: withId.data,
    many: many.data,
    tagged: tagged.data,
    user,
  };
}
`;

const withHeyApi = `
import { createPlant, deletePlant, getPlant, listPlants, getMe } from "./sdk";
import { client } from "./sdk/client.gen";

export async function run(baseUrl: string, token: string) {
  client.setConfig({ baseUrl, auth: token });
  const created = await createPlant({ body: { name: "Fern" } });
  const listed = await listPlants({ query: { limit: 10, fields: "id,name,tag" } });
  const id = listed.data?.[0]?.id ?? 0;
  const got = await getPlant({ path: { id }, query: { fields: "id" } });
  const deleted = await deletePlant({ path: { id } });
  const again = await deletePlant({ path: { id } });
  const withId = await createPlant({ query: { fields: "id" }, body: { name: "Ivy", id: 7 } });
  // It generates a type for JSON bodies only, so text goes through the client.
  const many = await client.post<string>({
    url: "/plants/bulk",
    security: [{ scheme: "bearer", type: "http" }],
    headers: { "Content-Type": "application/jsonl" },
    body: ${bulk},
    bodySerializer: null,
    parseAs: "text",
  });
  const tagged = await listPlants({ query: { tag: "shade" } });
  const me = await getMe();
  const user: string | undefined = me.data?.user;
  return {
    created: typeof created.data === "object" ? { ...created.data, name: created.data.name } : {},
    listed: listed.data,
    got: got.data,
    status: deleted.response?.status,
    error: again.error?.type,
    withId: withId.data,
    many: many.data,
    tagged: tagged.data,
    user,
  };
}
`;

const generators = [
  {
    name: "openapi-typescript and openapi-fetch",
    program: withOpenApiFetch,
    async generate(document: string, target: string) {
      const { default: openApiTypes, astToString } = await import("openapi-typescript");
      await Bun.write(join(target, "schema.ts"), astToString(await openApiTypes(document)));
    },
  },
  {
    name: "@hey-api/openapi-ts",
    program: withHeyApi,
    async generate(document: string, target: string) {
      const { createClient } = await import("@hey-api/openapi-ts");
      const input = join(target, "openapi.json");
      await Bun.write(input, document);
      await createClient({ input, output: join(target, "sdk"), logs: { level: "silent" } });
    },
  },
];

test.each(generators)(
  "$name: every operation with what it generates",
  async ({ program, generate }) => {
    const target = mkdtempSync(join(folder, "client-"));
    await generate(await (await service.call("GET /openapi.json")).text(), target);
    await Bun.write(join(target, "program.ts"), program);
    const compilerOptions = {
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      target: "esnext",
      module: "preserve",
      lib: ["esnext", "dom", "dom.iterable"],
      types: [],
    };
    await Bun.write(join(target, "tsconfig.json"), JSON.stringify({ compilerOptions }));
    const compiler = join(root, "node_modules/.bin/tsc");
    expect(await Bun.$`${compiler} -p ${target}`.nothrow().text()).toBe("");

    const { run } = await import(join(target, "program.ts"));
    expect(await run(service.url, service.token)).toEqual({
      created: { name: "Fern", tag: "" },
      listed: [{ id: expect.any(Number), name: "Fern", tag: "" }],
      got: { id: expect.any(Number) },
      status: 204,
      error: "urn:plantstore:problem:not-found",
      withId: { id: 7 },
      many: expect.stringMatching(/^\{"status":201,.*\n\{"status":409,.*\n\{"status":400,.*\n$/),
      tagged: [{ name: "Moss", tag: "shade" }],
      user: "gardener",
    });
    // For the next client.
    for (const { id } of await (await service.call("GET /plants?fields=id")).json()) {
      await service.call(`DELETE /plants/${id}`);
    }
  },
  60_000,
);
