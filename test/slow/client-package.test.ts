/** The client as its package ships it: under Node, its files, its types, its documentation. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plant } from "../../client/plant-store.ts";
import manifest from "../../package.json" with { type: "json" };
import { buildClientPackage } from "../../scripts/build-client.ts";
import { eventCases } from "../client/event-cases.ts";
import { plainCases } from "../client/plain-cases.ts";
import { troubleCases } from "../client/trouble-cases.ts";
import { makeTokens, readOutput, serveHere, waitFor } from "../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";

setDefaultTimeout(120_000);

const names = Object.keys({ ...plainCases, ...troubleCases, ...eventCases });
const root = join(import.meta.dir, "../..");
const folder = makeTemporaryFolder();
const service = await serveHere();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const home = join(folder.path, "node_modules/plantstore-client");
const read = (name: string) => readFileSync(join(home, name), "utf8");

beforeAll(() => buildClientPackage(home));

test("it does the same under Node, as far as the runtime matters", async () => {
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, "../client/node-runner.ts")],
    target: "node",
    plugins: [usePackage],
    outdir: folder.path,
    naming: "runner.mjs",
  });
  expect(built.success).toBe(true);
  const world = JSON.stringify({
    url: service.url,
    tokens: await makeTokens(service, "node", names.length),
  });
  const child = Bun.spawn(["node", join(folder.path, "runner.mjs")], {
    stdin: new Blob([world]),
    stderr: "pipe",
    // Then the case that hangs is missing in the output.
    timeout: 100_000,
  });
  const { out, errors } = await readOutput(child);
  expect(errors).toBe("");
  const results = out.trimEnd().split("\n");
  expect(results.map((line) => JSON.parse(line))).toEqual(
    expect.arrayContaining(names.map((name) => ({ name }))),
  );
});

test("it has the product's version, no dependencies, and code that can be read", () => {
  const own = JSON.parse(read("package.json"));
  expect([own.name, own.version]).toEqual(["plantstore-client", manifest.version]);
  expect(Object.keys(own).filter((key) => /dependencies/i.test(key))).toEqual([]);
  expect({ types: own.types, default: own.main }).toEqual(own.exports);
  const files = readdirSync(home).filter((name) => !/\.d\.ts$/.test(name));
  const modules = "events plant-store problem-error send types wire-text".split(" ");
  const expected = ["LICENSE", "README.md", "package.json", ...modules.map((each) => `${each}.js`)];
  expect(files.toSorted()).toEqual(expected.toSorted());
  expect(read("plant-store.js")).toContain("\nexport class PlantStore {\n");
  expect(read("plant-store.js")).toContain("/** Resolves once the plant is durable.");
});

test("its documentation keeps a copy of a garden current, and starts again if it has to", async () => {
  const [, recipe = ""] =
    /^```ts\n(import [^`]*function sync\([^`]*)^```$/m.exec(read("README.md")) ?? [];
  const path = join(folder.path, "sync.ts");
  await Bun.write(path, recipe);
  const { sync } = await import(path);
  const { PlantStore } = await import(join(home, "plant-store.js"));
  const [token] = await makeTokens(service, "sync", 1);
  // The first event that is asked for is one that there never was.
  let isLost = true;
  const store = new PlantStore({
    url: service.url,
    token,
    fetch: (url: string, init: RequestInit) => {
      const isPage = url.includes("/events?");
      const target = isPage && isLost ? url.replace(/after=\d+/, "after=99") : url;
      if (isPage) isLost = false;
      return fetch(target, init);
    },
  });
  const { id } = await store.create({ name: "Moss" });
  const copy = new Map<bigint, Plant>();
  const controller = new AbortController();
  const syncing = sync(store, copy, controller.signal).catch((error: Error) => error.name);
  await waitFor(() => copy.size === 1 || undefined);
  await store.create({ name: "Fern", id: 7 });
  await store.put(7, { name: "Royal fern", tag: "pond" });
  await store.delete(id);
  const current = [{ id: 7n, name: "Royal fern", tag: "pond" }];
  await waitFor(() => Bun.deepEquals([...copy.values()], current) || undefined);
  expect(isLost).toBe(false);
  controller.abort();
  expect(await syncing).toBe("AbortError");
});

test("it gives its types to TypeScript", async () => {
  await Bun.write(join(folder.path, "package.json"), '{"type":"module"}');
  await Bun.write(join(folder.path, "use.ts"), typedUse);
  const flags = "--strict --noEmit --module nodenext --target es2022 --lib es2022,dom".split(" ");
  const command = [join(root, "node_modules/.bin/tsc"), ...flags, "use.ts"];
  const child = Bun.spawn(command, { cwd: folder.path, stdout: "pipe", stderr: "pipe" });
  expect(await readOutput(child)).toEqual({ exitCode: 0, out: "", errors: "" });
});

/** The cases use the sources; under Node, the package takes their place. */
const usePackage: Bun.BunPlugin = {
  name: "use the package",
  setup({ onResolve }) {
    onResolve({ filter: /client\/plant-store\.ts$/ }, () => ({
      path: "plantstore-client",
      external: true,
    }));
  },
};

/** Compiles only where the types are as a strict user expects them. */
const typedUse = `
import { PlantStore, PlantStoreProblem, type Plant, type ProblemCode } from "plantstore-client";

const store = new PlantStore({ url: "http://localhost:8080", token: "t", retries: 2 });
const created = await store.create({ name: "Fern", id: 7n }, { idempotencyKey: "k" });
const id: bigint = created.id;
const short = new PlantStore({ url: "http://localhost:8080", token: async () => "t" });
const etag: string = (await short.get(id)).etag;
const same: Plant = await store.update(id, { tag: "hall" }, { ifMatch: etag });
const whole: Plant[] = [];
for await (const plant of store.list({ limit: 20 })) whole.push(plant);
for await (const { name, tag } of store.list({ tag: "shade" })) (name + tag).trim();
for await (const { seq, plant } of store.events({ after: 7 })) whole.push(plant), seq.toFixed();
// @ts-expect-error: a plant needs a name.
await store.create({ tag: "shade" }).catch(() => {});
try {
  await store.delete(id);
} catch (error) {
  if (error instanceof PlantStoreProblem) {
    const code: ProblemCode = error.code;
    if (code === "not-found") error.errors.map(({ pointer, detail }) => [pointer, detail]);
  }
}
`;
