/**
 * `npm run prove generators`: installs more of the tools that others read the document with, makes
 * a client with each generator, and runs it against a live service.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type RunningService, startService } from "../../test/end-to-end/running-service.ts";
import { expected, makeClients, runClient } from "../../test/generated-client.ts";
import type * as Installed from "./generators.mjs";
import { generators } from "./generators.mjs";

const outputs = join(import.meta.dir, "../../test/.output");
const installMs = 600_000;

let service: RunningService;
let folder: string;
let installed: typeof Installed;
let complaints: string;

beforeAll(async () => {
  mkdirSync(outputs, { recursive: true });
  folder = mkdtempSync(join(outputs, "generators-"));
  for (const name of [".npmrc", "package.json", "package-lock.json", "generators.mjs"]) {
    cpSync(join(import.meta.dir, name), join(folder, name));
  }
  await Bun.$`npm ci --ignore-scripts --no-audit --no-fund`.cwd(folder).quiet();
  service = await startService();
  // From there, so that it finds what it imports.
  installed = await import(join(folder, "generators.mjs"));
  complaints = await makeClients(installed.generators, folder, service);
}, installMs);

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test("the compiler accepts all clients", () => {
  expect(complaints).toBe("");
});

test.each(Object.keys(generators))("%s: its client does all that a plant needs", async (name) => {
  expect(await runClient(folder, name, service)).toEqual(expected);
  // The next client starts with an empty garden.
  expect((await service.call("GET /plants/7")).status).toBe(404);
});

test("the document has no errors by the rules of Spectral", async () => {
  const document = await (await service.call("GET /openapi.json")).json();
  // There is no contact: that's for the operator to say.
  expect(await installed.lint(document)).toEqual([["info-contact", "info"]]);
});
