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
const nodeMs = 120_000;
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

/** The package as npm would install it, next to the program that uses it. */
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
});
