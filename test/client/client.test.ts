/**
 * The client against the live service: under Bun from its source, under Node as the package ships
 * it.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { openStorage } from "../../src/storage/open.ts";
import { type RunningService, startService } from "../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { clientCases } from "./client-cases.ts";

const root = join(import.meta.dir, "../..");
const nodeMs = 60_000;
const folder = makeTemporaryFolder();
let service: RunningService;

beforeAll(async () => {
  service = await startService();
});

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** One for each case, each to a garden of its own. */
async function makeTokens(runtime: string): Promise<string[]> {
  const storage = await openStorage(service.database, { isServing: false });
  const wishes = clientCases.map((_, index) => ({ user: `${runtime}-${index}` }));
  const issued = [];
  for (const wish of wishes) issued.push(await issueToken(storage, wish, Date.now()));
  await storage.close();
  return issued.map(({ token }) => token);
}

async function runToEnd(command: readonly string[], input = ""): Promise<string> {
  const options = { cwd: folder.path, stdin: new Blob([input]), stderr: "pipe" } as const;
  const child = Bun.spawn([...command], options);
  const [out, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${command[0]} failed: ${out}${errors}`);
  return out;
}

/** A package as npm would install it, beside those who use it. */
async function installPackage(): Promise<void> {
  const home = join(folder.path, "node_modules/plantstore");
  mkdirSync(home, { recursive: true });
  cpSync(join(root, "package.json"), join(home, "package.json"));
  const compiler = join(root, "node_modules/.bin/tsc");
  await runToEnd([compiler, "-p", join(root, "src/client"), "--outDir", join(home, "dist/client")]);
}

describe.concurrent("under Bun it", () => {
  let tokens: string[];
  beforeAll(async () => {
    tokens = await makeTokens("bun");
  });

  test.each(clientCases.map(({ name }, index) => [name, index] as const))("%s", (_, index) =>
    clientCases[index]?.run({ url: service.url, token: tokens[index] ?? "" }),
  );
});

describe("as a package", () => {
  beforeAll(installPackage, nodeMs);

  test(
    "it does all the same under Node",
    async () => {
      const built = await Bun.build({
        entrypoints: [join(import.meta.dir, "node-runner.ts")],
        target: "node",
        external: ["plantstore/client"],
        outdir: folder.path,
        naming: "runner.mjs",
      });
      expect(built.success).toBe(true);
      const world = JSON.stringify({ url: service.url, tokens: await makeTokens("node") });
      const out = await runToEnd(["node", join(folder.path, "runner.mjs")], world);
      const results = out.trimEnd().split("\n");
      expect(results.map((line) => JSON.parse(line))).toEqual(
        clientCases.map(({ name }) => ({ name })),
      );
    },
    nodeMs,
  );

  test(
    "it has types that a strict user can build on",
    async () => {
      await Bun.write(join(folder.path, "user.mts"), typedUse);
      const settings = ["--strict", "--noEmit", "--skipLibCheck", "false", "--types", ""];
      const library = ["--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom"];
      const compiler = join(root, "node_modules/.bin/tsc");
      expect(await runToEnd([compiler, ...settings, ...library, "user.mts"])).toBe("");
    },
    nodeMs,
  );

  test("its bundle for a browser is under 5 KB gzipped and needs nothing else", async () => {
    const { outputs } = await Bun.build({
      entrypoints: [join(root, "src/client/plant-store.ts")],
      target: "browser",
      minify: true,
    });
    const text = (await outputs[0]?.text()) ?? "";
    expect(text).toContain("Bearer");
    expect(text).not.toMatch(/\b(?:import|require)\b|node:/);
    expect(Bun.gzipSync(text).length).toBeLessThan(5_000);
  });
});

const typedUse = `
import { PlantStore, PlantStoreProblem, type Plant, type ProblemCode } from "plantstore/client";

const store = new PlantStore({ url: "http://localhost:8080", token: "t", retries: 2 });
const created = await store.create({ name: "Fern", id: 7n }, { idempotencyKey: "k" });
const id: bigint = created.id;
const whole: Plant[] = [];
for await (const plant of store.list({ limit: 20 })) whole.push(plant);
for await (const { name } of store.list({ fields: ["name"] })) name.trim();
// @ts-expect-error: a field that was not asked for is not there.
for await (const { tag } of store.list({ fields: ["name"] })) tag;
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
