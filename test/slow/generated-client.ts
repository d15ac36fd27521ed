/**
 * Clients that others generate from the document, each made by its generator's defaults: what a
 * program does with one, and what must come of it.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { RunningService } from "../end-to-end/running-service.ts";

export interface Generator {
  readonly generate: (documentPath: string, target: string) => Promise<unknown>;
  /**
   * Exports `run`, which creates the plant 7, another one and the 7 again as a bulk, lists the 7
   * with its id, gets it, puts it with a stale If-Match and one that holds, and deletes it.
   */
  readonly program: string;
}

export const expected = {
  name: "Fern",
  many: [201, 409],
  listed: [{ id: 7, name: "Fern", tag: "" }],
  got: "Fern",
  refused: 412,
  put: "Royal fern",
};

const targetOf = (folder: string, name: string) => join(folder, name.replace(/\W/g, "-"));

/** Makes all clients in a folder. Returns what the compiler says of them. */
export async function makeClients(
  generators: Readonly<Record<string, Generator>>,
  folder: string,
  service: RunningService,
): Promise<string> {
  const documentPath = join(folder, "openapi.json");
  await Bun.write(documentPath, await service.call("GET /openapi.json"));
  for (const [name, { generate, program }] of Object.entries(generators)) {
    const target = targetOf(folder, name);
    mkdirSync(target);
    await generate(documentPath, target);
    await Bun.write(join(target, "program.ts"), program);
  }
  return compile(folder, Object.keys(generators));
}

/** All of them at once, which takes little longer than one. */
async function compile(folder: string, names: readonly string[]): Promise<string> {
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
  const include = names.map((name) => targetOf(folder, name));
  await Bun.write(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, include }));
  const compiler = join(import.meta.dir, "../node_modules/.bin/tsc");
  return Bun.$`${compiler} -p ${folder}`.nothrow().text();
}

/** Returns what the program returns, which must be `expected`. */
export async function runClient(
  folder: string,
  name: string,
  { url, token }: RunningService,
): Promise<unknown> {
  const { run } = await import(join(targetOf(folder, name), "program.ts"));
  return run(url, token);
}
