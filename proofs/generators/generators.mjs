/** The other generators. They are installed by the proof, so nothing here has types. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const generators = {
  oazapfts: {
    async generate(documentPath, target) {
      const { generateSource } = await import("oazapfts");
      writeFileSync(join(target, "api.ts"), await generateSource(documentPath));
    },
    program: `
import { createPlant, createPlants, defaults, deletePlant, getPlant, listPlants, putPlant } from "./api";

export async function run(baseUrl: string, token: string) {
  defaults.baseUrl = baseUrl;
  defaults.headers = { Authorization: "Bearer " + token };
  const created = await createPlant({ name: "Fern", id: 7 });
  const name: string | undefined = created.status === 201 ? created.data.name : undefined;
  const many = await createPlants([{ name: "Moss" }, { name: "Ivy", id: 7 }]);
  const listed = await listPlants({ limit: 1, after: 6, include: "id" });
  const got = await getPlant(7);
  const body = { name: "Royal fern" };
  const refused = await putPlant(7, body, { ifMatch: '"stale"' });
  const put = await putPlant(7, body, { ifMatch: got.headers.get("ETag") ?? "" });
  await deletePlant(7);
  return {
    name,
    many: many.status === 200 ? many.data.map(({ status }) => status) : undefined,
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
  const many = await plants.createPlants([{ name: "Moss" }, { name: "Ivy", id: 7 }]);
  const listed = await plants.listPlants({ limit: 1, after: 6, include: "id" });
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
    many: many.data.map(({ status }) => status),
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
      const openApiDoc = JSON.parse(readFileSync(documentPath, "utf8"));
      await generateZodClientFromOpenAPI({ openApiDoc, distPath: join(target, "api.ts") });
    },
    program: `
import { createApiClient } from "./api";

export async function run(baseUrl: string, token: string) {
  const headers = { Authorization: "Bearer " + token };
  const client = createApiClient(baseUrl, { axiosConfig: { headers } });
  const created = await client.post("/plants", { name: "Fern", id: 7 });
  const name: string = created.name;
  const many = await client.post("/plants/bulk", [{ name: "Moss" }, { name: "Ivy", id: 7 }]);
  const queries = { limit: 1, after: 6, include: "id" as const };
  const listed = await client.get("/plants", { queries });
  const params = { id: 7 };
  const got = await client.get("/plants/:id", { params });
  // Its results have no headers, so it can't know the ETag.
  const replace = (etag: string) =>
    client.put("/plants/:id", { name: "Royal fern" }, { params, headers: { "If-Match": etag } });
  const refused = await replace('"stale"').catch((error) => error.response);
  const put = await replace("*");
  await client.delete("/plants/:id", undefined, { params });
  return {
    name,
    many: many.map(({ status }) => status),
    listed,
    got: got.name,
    refused: refused.status,
    put: put.name,
  };
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
import { createPlant, createPlants, deletePlant, getPlant, listPlants, putPlant } from "./gen";

export async function run(baseURL: string, token: string) {
  setConfig({ baseURL, headers: { Authorization: "Bearer " + token } });
  const created = await createPlant({ name: "Fern", id: 7 });
  const name: string = created.name;
  const many = await createPlants([{ name: "Moss" }, { name: "Ivy", id: 7 }]);
  const listed = await listPlants({ limit: 1, after: 6, include: "id" });
  const got = await getPlant(7);
  // Its results have no headers, so it can't know the ETag.
  const replace = (etag: string) =>
    putPlant(7, { name: "Royal fern" }, undefined, { "If-Match": etag });
  const refused = await replace('"stale"').catch((error) => error.response);
  const put = await replace("*");
  await deletePlant(7);
  return {
    name,
    many: many.map(({ status }) => status),
    listed,
    got: got.name,
    refused: refused.status,
    put: put.name,
  };
}`,
  },
};

/** What the rules of Spectral say of a document: each rule, and where. */
export async function lint(document) {
  const { Spectral } = await import("@stoplight/spectral-core");
  const { oas } = await import("@stoplight/spectral-rulesets");
  const spectral = new Spectral();
  spectral.setRuleset({ extends: oas });
  const findings = await spectral.run(document);
  return findings.map(({ code, path }) => [code, path.join("/")]);
}
