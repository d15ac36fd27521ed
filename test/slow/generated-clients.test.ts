/** A client that others generate from the document, with the generator's defaults. */
import { expect, mock, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ts } from "@ts-morph/common";
import { startService } from "../../testing/running-service.ts";

// The generator builds on the compiler's old programming interface, which TypeScript 7 lacks.
mock.module("typescript", () => ({ ...ts, default: ts }));

const outputs = join(import.meta.dir, "../.output");
const compilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: "esnext",
  module: "preserve",
  lib: ["esnext", "dom", "dom.iterable", "dom.asynciterable"],
  types: [],
};

/** Every operation. The types that it writes out are those that a user expects. */
const program = `
import createClient from "openapi-fetch";
import type { paths } from "./schema";

export async function run(baseUrl: string, token: string) {
  const headers = { Authorization: "Bearer " + token };
  const client = createClient<paths>({ baseUrl, headers });
  const created = await client.POST("/plants", { body: { name: "Fern", id: 7 } });
  const plant: { name: string; tag: string } | undefined = created.data;
  const plants = [{ name: "Moss" }, { name: "Ivy", id: 7 }];
  const many = await client.POST("/plants/bulk", { body: plants });
  const query = { limit: 1, after: 6, include: "id" as const };
  const listed = await client.GET("/plants", { params: { query } });
  const id: number | undefined = listed.data?.[0]?.id;
  const path = { id: id ?? 0 };
  const got = await client.GET("/plants/{id}", { params: { path } });
  const header = { "If-Match": got.response.headers.get("ETag") ?? "" };
  const body = { name: "Royal fern" };
  const put = await client.PUT("/plants/{id}", { params: { path, header }, body });
  const patched = await client.PATCH("/plants/{id}", { params: { path }, body: { tag: "pond" } });
  const updated = await client.POST("/plants/bulk-update", { body: { ids: [8], set: { tag: "" } } });
  const tags = await client.GET("/tags");
  const deleted = await client.POST("/plants/bulk-delete", { body: { ids: [8, 9] } });
  await client.DELETE("/plants/{id}", { params: { path } });
  const events = await client.GET("/events", { params: { query: { after: 0, limit: 1 } } });
  const me = await client.GET("/me");
  return [
    [plant, many.data?.map(({ status }) => status), listed.data, put.data?.name],
    [patched.data?.tag, updated.data?.updated, tags.data?.length, deleted.data?.missing],
    [events.data?.[0]?.plant, me.data?.plants],
  ];
}`;

/** As docs/client.md does it. It ends when `console` throws. */
async function makeFollower(): Promise<string> {
  const page = await Bun.file(join(import.meta.dir, "../../docs/client.md")).text();
  const [, imports = "", lines = ""] =
    /^```ts\n(import type { components }.*\n)\n([^`]*)^```$/m.exec(page) ?? [];
  return `${imports}
export async function follow(
  baseUrl: string,
  token: string,
  console: { log: (...shown: unknown[]) => void },
) {
  const lastEvent = 0;
  const client = createClient<paths>({ baseUrl, headers: { Authorization: "Bearer " + token } });
  ${lines}
}`;
}

test("openapi-typescript: the compiler accepts its client, which calls every operation", async () => {
  mkdirSync(outputs, { recursive: true });
  // In the project, so that the program finds what it imports.
  const folder = mkdtempSync(join(outputs, "clients-"));
  try {
    await using service = await startService();
    const { default: openApiTypes, astToString } = await import("openapi-typescript");
    const types = await openApiTypes(await (await service.call("GET /openapi.json")).text());
    await Bun.write(join(folder, "schema.ts"), astToString(types));
    await Bun.write(join(folder, "program.ts"), program + (await makeFollower()));
    await Bun.write(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
    const compiler = join(import.meta.dir, "../../node_modules/.bin/tsc");
    expect(await Bun.$`${compiler} -p ${folder}`.nothrow().text()).toBe("");
    const { run, follow } = await import(join(folder, "program.ts"));
    const fern = { id: 7, name: "Fern", tag: "" };
    expect(await run(service.url, service.token)).toEqual([
      [{ name: "Fern", tag: "" }, [201, 409], [fern], "Royal fern"],
      ["pond", 1, 2, [9]],
      [fern, 0],
    ]);
    const shown: unknown[] = [];
    const log = (...values: unknown[]) => {
      shown.push(values);
      if (shown.length === 2) throw new RangeError("enough");
    };
    const following = follow(service.url, service.token, { log }).catch((error: Error) => error);
    expect(await following).toBeInstanceOf(RangeError);
    expect(shown).toEqual([
      [1, "plant.created", "Fern"],
      [2, "plant.created", "Moss"],
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 120_000);
