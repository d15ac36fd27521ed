/** A client that users generate from the OpenAPI document, with the generator's defaults. */
import { afterAll, beforeAll, describe, expect, mock, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ts } from "@ts-morph/common";
import { openGarden, type RunningService, startService } from "../../testing/running-service.ts";

setDefaultTimeout(120_000);

// The generator builds on the compiler's old programming interface, which TypeScript 7 lacks.
mock.module("typescript", () => ({ ...ts, default: ts }));

const compilerOptions = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: "esnext",
  module: "preserve",
  lib: ["esnext", "dom", "dom.iterable", "dom.asynciterable"],
  types: [],
};

/** Calls every operation. The types that it writes out are those that a user expects. */
const everyOperation = `
import createClient from "openapi-fetch";
import type { paths } from "./schema";

export async function callEveryOperation(baseUrl: string, token: string) {
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
  return {
    created: plant,
    statusesOfMany: many.data?.map(({ status }) => status),
    listed: listed.data,
    nameAfterPut: put.data?.name,
    tagAfterPatch: patched.data?.tag,
    updatedCount: updated.data?.updated,
    tagsCount: tags.data?.length,
    missingIds: deleted.data?.missing,
    plantOfFirstEvent: events.data?.[0]?.plant,
    plantsInTheEnd: me.data?.plants,
  };
}`;

/** The program in docs/client.md that follows events. It ends when `console` throws. */
async function readFollower(): Promise<string> {
  const page = await Bun.file(join(import.meta.dir, "../../docs/client.md")).text();
  const [, imports = "", lines = ""] =
    /^```ts\n(import type { components }.*\n)\n([^`]*)^```$/m.exec(page) ?? [];
  return `${imports}
export async function followEvents(
  baseUrl: string,
  token: string,
  console: { log: (...shown: unknown[]) => void },
) {
  const lastEvent = 0;
  const client = createClient<paths>({ baseUrl, headers: { Authorization: "Bearer " + token } });
  ${lines}
}`;
}

describe("a client that openapi-typescript generates", () => {
  let service: RunningService;
  let folder = "";

  beforeAll(async () => {
    service = await startService();
    // In the project, so that the program finds what it imports.
    const outputs = join(import.meta.dir, "../.output");
    mkdirSync(outputs, { recursive: true });
    folder = mkdtempSync(join(outputs, "clients-"));

    const { default: openApiTypes, astToString } = await import("openapi-typescript");
    const types = await openApiTypes(await (await service.call("GET /openapi.json")).text());
    await Bun.write(join(folder, "schema.ts"), astToString(types));
    await Bun.write(join(folder, "program.ts"), everyOperation + (await readFollower()));
    await Bun.write(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  });

  afterAll(async () => {
    await service[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  test("has the types that its user expects", async () => {
    const compiler = join(import.meta.dir, "../../node_modules/.bin/tsc");

    const complaints = await Bun.$`${compiler} -p ${folder}`.nothrow().text();

    expect(complaints).toBe("");
  });

  test("calls every operation", async () => {
    const { callEveryOperation } = await import(join(folder, "program.ts"));

    expect(await callEveryOperation(service.url, service.token)).toEqual({
      created: { name: "Fern", tag: "" },
      statusesOfMany: [201, 409],
      listed: [{ id: 7, name: "Fern", tag: "" }],
      nameAfterPut: "Royal fern",
      tagAfterPatch: "pond",
      updatedCount: 1,
      tagsCount: 2,
      missingIds: [9],
      plantOfFirstEvent: { id: 7, name: "Fern", tag: "" },
      plantsInTheEnd: 0,
    });
  });

  test("follows events as docs/client.md shows", async () => {
    const { followEvents } = await import(join(folder, "program.ts"));
    const { call, token } = await openGarden(service, { user: "follower" });
    await call("POST /plants", { body: '{"name":"Fern"}' });
    await call("POST /plants", { body: '{"name":"Moss"}' });
    const shown: unknown[] = [];
    const console = {
      log(...values: unknown[]) {
        shown.push(values);
        if (shown.length === 2) throw new RangeError("enough");
      },
    };

    const error = await followEvents(service.url, token, console).catch((error: Error) => error);

    expect(error).toBeInstanceOf(RangeError);
    expect(shown).toEqual([
      [1, "plant.created", "Fern"],
      [2, "plant.created", "Moss"],
    ]);
  });
});
