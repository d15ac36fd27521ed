/** Two clients that others generate from the document. */
import { afterAll, beforeAll, expect, mock, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ts } from "@ts-morph/common";
import { type RunningService, startService } from "../end-to-end/running-service.ts";
import { expected, type Generator, makeClients, runClient } from "./generated-client.ts";

// The generators build on the compiler's old programming interface, which TypeScript 7 lacks.
mock.module("typescript", () => ({ ...ts, default: ts }));

const outputs = join(import.meta.dir, "../.output");
const generateMs = 300_000;

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
  const headers = { Authorization: "Bearer " + token };
  const client = createClient<paths>({ baseUrl, headers });
  const created = await client.POST("/plants", { body: { name: "Fern", id: 7 } });
  const name: string | undefined = created.data?.name;
  const many = await client.POST("/plants/bulk", {
    body: [{ name: "Moss", tag: "shade" }, { name: "Ivy", id: 7 }],
  });
  const query = { limit: 1, after: 6, include: "id" as const };
  const listed = await client.GET("/plants", { params: { query } });
  const id: number | undefined = listed.data?.[0]?.id;
  const path = { id: id ?? 0 };
  const got = await client.GET("/plants/{id}", { params: { path } });
  const body = { name: "Royal fern" };
  const stale = { params: { path, header: { "If-Match": '"stale"' } } };
  const refused = await client.PUT("/plants/{id}", { ...stale, body });
  const header = { "If-Match": got.response.headers.get("ETag") ?? "" };
  const put = await client.PUT("/plants/{id}", { params: { path, header }, body });
  await client.DELETE("/plants/{id}", { params: { path } });
  return {
    name,
    many: many.data?.map(({ status }) => status),
    listed: listed.data,
    got: got.data?.name,
    refused: refused.response.status,
    put: put.data?.name,
  };
}`,
  },
  "@hey-api/openapi-ts": {
    async generate(input, target) {
      const { createClient } = await import("@hey-api/openapi-ts");
      await createClient({ input, output: join(target, "sdk"), logs: { level: "silent" } });
    },
    program: `
import { createPlant, createPlants, deletePlant, getPlant, listPlants, putPlant } from "./sdk";
import { client } from "./sdk/client.gen";

export async function run(baseUrl: string, token: string) {
  client.setConfig({ baseUrl, auth: token });
  const path = { id: 7 };
  const created = await createPlant({ body: { name: "Fern", id: 7 } });
  const name: string | undefined = created.data?.name;
  const many = await createPlants({ body: [{ name: "Moss" }, { name: "Ivy", id: 7 }] });
  const listed = await listPlants({ query: { limit: 1, after: 6, include: "id" } });
  const got = await getPlant({ path });
  const body = { name: "Royal fern" };
  const refused = await putPlant({ path, body, headers: { "If-Match": '"stale"' } });
  const etag = got.response?.headers.get("ETag") ?? "";
  const put = await putPlant({ path, body, headers: { "If-Match": etag } });
  await deletePlant({ path });
  return {
    name,
    many: many.data?.map(({ status }) => status),
    listed: listed.data,
    got: got.data?.name,
    refused: refused.response?.status,
    put: put.data?.name,
  };
}`,
  },
};

let service: RunningService;
/** In the project, so that the programs find what they import. */
let folder: string;
let complaints: string;

beforeAll(async () => {
  mkdirSync(outputs, { recursive: true });
  folder = mkdtempSync(join(outputs, "clients-"));
  service = await startService();
  complaints = await makeClients(generators, folder, service);
}, generateMs);

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test("the compiler accepts both of them", () => {
  expect(complaints).toBe("");
});

test.each(Object.keys(generators))("%s: its client does all that a plant needs", async (name) => {
  expect(await runClient(folder, name, service)).toEqual(expected);
  // The next client starts with an empty garden.
  expect((await service.call("GET /plants/7")).status).toBe(404);
});
