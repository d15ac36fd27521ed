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
  /** Creates a plant and deletes it. The first does more. */
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
  await client.DELETE("/plants/{id}", { params: { path: { id: 7 } } });
  return {
    name,
    withId: withId.data,
    many: many.data,
    listed: listed.data,
    error: again.error?.type,
  };
}`,
    more: {
      error: "urn:plantstore:problem:conflict",
      withId: { id: 7 },
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
import { createPlant, deletePlant } from "./sdk";
import { client } from "./sdk/client.gen";

export async function run(baseUrl: string, token: string) {
  client.setConfig({ baseUrl, auth: token });
  const created = await createPlant({ body: { name: "Fern", id: 7 } });
  const name: string | undefined = created.data?.name;
  await deletePlant({ path: { id: 7 } });
  return { name };
}`,
  },
  oazapfts: {
    async generate(documentPath, target) {
      const { generateSource } = await import("oazapfts");
      await Bun.write(join(target, "api.ts"), await generateSource(documentPath));
    },
    program: `
import { createPlant, defaults, deletePlant } from "./api";

export async function run(baseUrl: string, token: string) {
  defaults.baseUrl = baseUrl;
  defaults.headers = { Authorization: "Bearer " + token };
  const created = await createPlant({ name: "Fern", id: 7 });
  const name: string | undefined = created.status === 201 ? created.data.name : undefined;
  await deletePlant(7);
  return { name };
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
  await plants.deletePlant(7);
  return { name };
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
  await client.delete("/plants/:id", undefined, { params: { id: 7 } });
  return { name };
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
import { createPlant, deletePlant } from "./gen";

export async function run(baseURL: string, token: string) {
  setConfig({ baseURL, headers: { Authorization: "Bearer " + token } });
  const created = await createPlant({ name: "Fern", id: 7 });
  const name: string = created.name;
  await deletePlant(7);
  return { name };
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

test.each(Object.keys(generators))("%s: its client creates and deletes plants", async (name) => {
  const { run } = await import(join(targetOf(name), "program.ts"));
  expect(await run(service.url, service.token)).toEqual({
    name: "Fern",
    ...generators[name]?.more,
  });
  // Nothing is left in the way of the next client.
  expect((await service.call("GET /plants/7")).status).toBe(404);
});
