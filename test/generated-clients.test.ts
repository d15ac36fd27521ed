/**
 * Clients that others generate from the document: made by each generator with its defaults,
 * type-checked, and run against a live service.
 */
import { afterAll, beforeAll, expect, mock, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ts } from "@ts-morph/common";
import { type RunningService, startService } from "./end-to-end/running-service.ts";

// The generators build on the compiler's old programming interface, which TypeScript 7 lacks.
mock.module("typescript", () => ({ ...ts, default: ts }));

const root = join(import.meta.dir, "..");
const outputs = join(import.meta.dir, ".output");
const generateMs = 300_000;

/** JSON Lines, as they stand in a program. */
const bulk = JSON.stringify('{"name":"Moss","tag":"shade"}\n{"name":"Ivy","id":7}\n{}\n');

interface Generator {
  readonly generate: (documentPath: string, target: string) => Promise<unknown>;
  /**
   * Creates the plant 7, lists it, gets it, puts it with a stale If-Match and one that holds, and
   * deletes it. The first does more.
   */
  readonly program: string;
  readonly more?: Readonly<Record<string, unknown>>;
}

const generators: Readonly<Record<string, Generator>> = {
  "openapi-typescript": {
    async generate(documentPath, target) {
      const { default: openApiTypes, astToString } = await import("openapi-typescript");
      const types = await openApiTypes(await Bun.file(documentPath).text());
      await Bun.write(join(target, "schema.ts"), astToString(types));
    },
    program: `
import createClient from "openapi-fetch";
import type { paths } from "./schema";

export async function run(baseUrl: string, token: string) {
  const client = createClient<paths>({
    baseUrl,
    headers: { Authorization: "Bearer " + token },
    querySerializer: { array: { style: "form", explode: false } },
  });
  const created = await client.POST("/plants", { body: { name: "Fern" } });
  const name: string | undefined = created.data?.name;
  const path = { id: 7 };
  const stale = { params: { path, header: { "If-Match": '"stale"' } } };
  const withId = await client.POST("/plants", {
    params: { query: { fields: ["id"] } },
    body: { name: "Ivy", id: 7 },
  });
  const many = await client.POST("/plants/bulk", {
    headers: { "Content-Type": "application/jsonl" },
    body: ${bulk},
    bodySerializer: (lines) => lines,
    parseAs: "text",
  });
  const query = { limit: 1, after: 6, fields: ["id" as const] };
  const listed = await client.GET("/plants", { params: { query } });
  const again = await client.POST("/plants", { body: { name: "Ivy", id: 7 } });
  const got = await client.GET("/plants/{id}", { params: { path } });
  const body = { name: "Royal fern" };
  const refused = await client.PUT("/plants/{id}", { ...stale, body });
  const header = { "If-Match": got.response.headers.get("ETag") ?? "" };
  const put = await client.PUT("/plants/{id}", { params: { path, header }, body });
  await client.DELETE("/plants/{id}", { params: { path } });
  return {
    name,
    got: got.data?.name,
    refused: refused.response.status,
    put: put.data?.name,
    withId: withId.data,
    many: many.data,
    listed: listed.data,
    error: again.error?.type,
  };
}`,
    more: {
      error: "urn:plantstore:problem:conflict",
      withId: { id: 7 },
      got: "Ivy",
      listed: [{ id: 7 }],
      many: expect.stringMatching(/^\{"status":201,.*\n\{"status":409,.*\n\{"status":400,.*\n$/),
    },
  },
  "@hey-api/openapi-ts": {
    async generate(input, target) {
      const { createClient } = await import("@hey-api/openapi-ts");
      await createClient({ input, output: join(target, "sdk"), logs: { level: "silent" } });
    },
    program: `
import { createPlant, deletePlant, getPlant, listPlants, putPlant } from "./sdk";
import { client } from "./sdk/client.gen";

export async function run(baseUrl: string, token: string) {
  client.setConfig({ baseUrl, auth: token });
  const path = { id: 7 };
  const created = await createPlant({ body: { name: "Fern", id: 7 } });
  const name: string | undefined = created.data?.name;
  const listed = await listPlants({ query: { limit: 1, after: 6 } });
  const got = await getPlant({ path });
  const body = { name: "Royal fern" };
  const refused = await putPlant({ path, body, headers: { "If-Match": '"stale"' } });
  const etag = got.response?.headers.get("ETag") ?? "";
  const put = await putPlant({ path, body, headers: { "If-Match": etag } });
  await deletePlant({ path });
  return {
    name,
    listed: listed.data,
    got: got.data?.name,
    refused: refused.response?.status,
    put: put.data?.name,
  };
}`,
  },
  oazapfts: {
    async generate(documentPath, target) {
      const { generateSource } = await import("oazapfts");
      await Bun.write(join(target, "api.ts"), await generateSource(documentPath));
    },
    program: `
import { createPlant, defaults, deletePlant, getPlant, listPlants, putPlant } from "./api";

export async function run(baseUrl: string, token: string) {
  defaults.baseUrl = baseUrl;
  defaults.headers = { Authorization: "Bearer " + token };
  const created = await createPlant({ name: "Fern", id: 7 });
  const name: string | undefined = created.status === 201 ? created.data.name : undefined;
  const listed = await listPlants({ limit: 1, after: 6 });
  const got = await getPlant(7);
  const body = { name: "Royal fern" };
  const refused = await putPlant(7, body, { ifMatch: '"stale"' });
  const put = await putPlant(7, body, { ifMatch: got.headers.get("ETag") ?? "" });
  await deletePlant(7);
  return {
    name,
    listed: listed.status === 200 ? listed.data : undefined,
    got: got.status === 200 ? got.data.name : undefined,
    refused: refused.status,
    put: put.status === 200 ? put.data.name : undefined,
  };
}`,
  },
  "swagger-typescript-api": {
    async generate(input, output) {
      const { generateApi } = await import("swagger-typescript-api");
      await generateApi({ input, output, silent: true });
    },
    program: `
import { Api } from "./Api";

export async function run(baseUrl: string, token: string) {
  const securityWorker = () => ({ headers: { Authorization: "Bearer " + token } });
  const { plants } = new Api({ baseUrl, securityWorker });
  const created = await plants.createPlant({ name: "Fern", id: 7 });
  const name: string = created.data.name;
  const listed = await plants.listPlants({ limit: 1, after: 6 });
  const got = await plants.getPlant(7);
  const body = { name: "Royal fern" };
  // It leaves headers to whoever calls.
  const replace = (etag: string) =>
    plants.putPlant(7, body, {}, { headers: { "If-Match": etag } });
  const refused = await replace('"stale"').catch((response) => response);
  const put = await replace(got.headers.get("ETag") ?? "");
  await plants.deletePlant(7);
  return {
    name,
    listed: listed.data,
    got: got.data.name,
    refused: refused.status,
    put: put.data.name,
  };
}`,
  },
  "openapi-zod-client": {
    async generate(documentPath, target) {
      const { generateZodClientFromOpenAPI } = await import("openapi-zod-client");
      const openApiDoc = await Bun.file(documentPath).json();
      await generateZodClientFromOpenAPI({ openApiDoc, distPath: join(target, "api.ts") });
    },
    program: `
import { createApiClient } from "./api";

export async function run(baseUrl: string, token: string) {
  const headers = { Authorization: "Bearer " + token };
  const client = createApiClient(baseUrl, { axiosConfig: { headers } });
  const created = await client.post("/plants", { name: "Fern", id: 7 });
  const name: string = created.name;
  const listed = await client.get("/plants", { queries: { limit: 1, after: 6 } });
  const params = { id: 7 };
  const got = await client.get("/plants/:id", { params });
  // Its results have no headers, so it can't know the ETag.
  const replace = (etag: string) =>
    client.put("/plants/:id", { name: "Royal fern" }, { params, headers: { "If-Match": etag } });
  const refused = await replace('"stale"').catch((error) => error.response);
  const put = await replace("*");
  await client.delete("/plants/:id", undefined, { params });
  return { name, listed, got: got.name, refused: refused.status, put: put.name };
}`,
  },
  kubb: {
    async generate(path, target) {
      const { build } = await import("@kubb/core");
      const { pluginOas } = await import("@kubb/plugin-oas");
      const { pluginTs } = await import("@kubb/plugin-ts");
      const { pluginClient } = await import("@kubb/plugin-client");
      const plugins = [pluginOas(), pluginTs(), pluginClient()];
      const output = { path: join(target, "gen") };
      await build({ config: { root: ".", input: { path }, output, plugins } });
    },
    program: `
import { setConfig } from "@kubb/plugin-client/clients/axios";
import { createPlant, deletePlant, getPlant, listPlants, putPlant } from "./gen";

export async function run(baseURL: string, token: string) {
  setConfig({ baseURL, headers: { Authorization: "Bearer " + token } });
  const created = await createPlant({ name: "Fern", id: 7 });
  const name: string = created.name;
  const listed = await listPlants({ limit: 1, after: 6 });
  const got = await getPlant(7);
  // Its results have no headers, so it can't know the ETag.
  const replace = (etag: string) =>
    putPlant(7, { name: "Royal fern" }, undefined, { "If-Match": etag });
  const refused = await replace('"stale"').catch((error) => error.response);
  const put = await replace("*");
  await deletePlant(7);
  return { name, listed, got: got.name, refused: refused.status, put: put.name };
}`,
  },
};

let service: RunningService;
/** In the project, so that the programs find what they import. */
let folder: string;
let complaints: string;

const targetOf = (name: string) => join(folder, name.replace(/\W/g, "-"));

beforeAll(async () => {
  mkdirSync(outputs, { recursive: true });
  folder = mkdtempSync(join(outputs, "clients-"));
  service = await startService();
  const documentPath = join(folder, "openapi.json");
  await Bun.write(documentPath, await service.call("GET /openapi.json"));
  for (const [name, { generate, program }] of Object.entries(generators)) {
    const target = targetOf(name);
    mkdirSync(target);
    await generate(documentPath, target);
    await Bun.write(join(target, "program.ts"), program);
  }
  complaints = await compile();
}, generateMs);

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** All of them at once, which takes little longer than one. */
async function compile(): Promise<string> {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    target: "esnext",
    module: "preserve",
    lib: ["esnext", "dom", "dom.iterable"],
    types: [],
  };
  await Bun.write(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  const compiler = join(root, "node_modules/.bin/tsc");
  return Bun.$`${compiler} -p ${folder}`.nothrow().text();
}

test("the compiler accepts all of them", () => {
  expect(complaints).toBe("");
});

test.each(Object.keys(generators))("%s: its client does all that a plant needs", async (name) => {
  const { run } = await import(join(targetOf(name), "program.ts"));
  expect(await run(service.url, service.token)).toEqual({
    name: "Fern",
    listed: [{ name: "Fern", tag: "" }],
    got: "Fern",
    refused: 412,
    put: "Royal fern",
    ...generators[name]?.more,
  });
  // Nothing is left in the way of the next client.
  expect((await service.call("GET /plants/7")).status).toBe(404);
});
