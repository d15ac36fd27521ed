/**
 * What users download, built once: the single executable, the npm package in a new project and with
 * each block of the README, and the client's package.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Plant } from "../../client/plant-store.ts";
import manifest from "../../package.json" with { type: "json" };
import { buildClientPackage } from "../../scripts/build-client.ts";
import { makeDatabase, type TestDatabase } from "../../testing/postgres-server.ts";
import {
  makeTokens,
  readOutput,
  serveHere,
  untilItSays,
  waitFor,
} from "../../testing/running-service.ts";
import { skipsWithout } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { eventCases } from "../client/event-cases.ts";
import { plainCases } from "../client/plain-cases.ts";
import { troubleCases } from "../client/trouble-cases.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
const folder = makeTemporaryFolder();
afterAll(() => folder[Symbol.dispose]());

function inFolder(name: string): string {
  return join(folder.path, name);
}

/** Nothing of the npm that runs these tests, except how it reaches packages. */
const environment: Readonly<Record<string, string>> = {
  PATH: (process.env.PATH ?? "")
    .split(":")
    .filter((path) => !path.includes("node_modules"))
    .join(":"),
  HOME: process.env.HOME ?? "",
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) =>
      /^npm_config_(?:registry|cafile)$|_proxy$|^NODE_EXTRA_CA_CERTS$/i.test(name),
    ),
  ),
};

interface Place {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs a command to its end. */
function run(command: readonly string[], { cwd, env = environment }: Place) {
  return readOutput(Bun.spawn([...command], { cwd, env, stdout: "pipe", stderr: "pipe" }));
}

/** Uses a service on any port, then stops it as Ctrl+C does. It ends as it should. */
async function serve(
  command: readonly string[],
  { cwd, env = environment }: Place,
  use: (url: string, token: string) => Promise<void>,
): Promise<void> {
  const child = Bun.spawn([...command], {
    cwd,
    env: { ...env, PLANTSTORE_PORT: "0" },
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  const { found, written, reading } = await untilItSays(/"url":"([^"]+)"/, child);
  try {
    await use(found, /plant_\w{49}/.exec(written.errors)?.[0] ?? "");
  } finally {
    // A terminal signals the whole group.
    process.kill(-child.pid, "SIGINT");
    await reading;
  }
  expect(written.out).toContain('"event":"stopped"');
}

// It builds the executable and the client's package, because the sizes need them.
test("this version could be released, but for the checks that take minutes", async () => {
  const script = join(root, "scripts/release-check.ts");

  const { out } = await run([process.execPath, script, "--quick"], { cwd: root });

  expect(out).not.toMatch(/^fails/m);
  expect(Array.from(out.matchAll(/^\w+ +\w+/gm), String)).toEqual([
    "ok    version",
    "ok    licenses",
    "ok    SBOM",
    "ok    sizes",
  ]);
});

describe("the executable, with nothing of this machine around it,", () => {
  const executable = join(root, "dist/plantstore");

  test("knows its version", async () => {
    const { out } = await run([executable, "--version"], { cwd: folder.path, env: {} });

    expect(out).toContain(manifest.version);
  });

  describe.each(["SQLite", "PostgreSQL"])("on %s", (engine) => {
    const home = inFolder(`home-${engine}`);
    let database: TestDatabase | undefined;
    let env: Record<string, string> = {};

    beforeAll(async () => {
      mkdirSync(home);
      database = engine === "PostgreSQL" ? await makeDatabase() : undefined;
      env = database ? { PLANTSTORE_DATABASE: database.url } : {};
    });

    afterAll(async () => {
      await database?.drop();
    });

    /** Runs a command in the home folder, with these variables and no others. */
    function execute(command: string, variables: Record<string, string>) {
      return run([executable, ...command.split(" ")], { cwd: home, env: variables });
    }

    function serveOnTwoThreads(use: (url: string) => Promise<void>): Promise<void> {
      const place = { cwd: home, env: { ...env, PLANTSTORE_THREADS: "2" } };
      return serve([executable, "serve"], place, use);
    }

    test("serves plants to its own commands, on two threads", async () => {
      const { out } = await execute("token create ada", env);
      const token = out.trim();

      await serveOnTwoThreads(async (url) => {
        const access = { PLANTSTORE_URL: url, PLANTSTORE_TOKEN: token };
        expect((await execute("plants add Fern --id 7", access)).exitCode).toBe(0);
        expect((await execute("plants list", access)).out).toContain("Fern");
        expect((await execute("plants delete 7", access)).exitCode).toBe(0);
        expect((await execute(`health --url ${url}`, {})).out).toBe("ready\n");
      });
    });

    test("serves the console and the API reference, and all that they load", async () => {
      await serveOnTwoThreads(async (url) => {
        for (const path of ["/", "/docs"]) {
          const page = await fetch(url + path);
          expect(page.status).toBe(200);
          const assets = (await page.text()).match(/assets\/[\w.-]+/g) ?? [];
          expect(assets.length).toBeGreaterThan(1);
          for (const asset of assets) expect((await fetch(`${url}/${asset}`)).status).toBe(200);
        }
      });
    });

    test(engine === "SQLite" ? "writes only to data/" : "writes no files", async () => {
      await serveOnTwoThreads(async () => {});

      expect(readdirSync(home)).toEqual(engine === "SQLite" ? ["data"] : []);
    });
  });
});

describe("the npm package", () => {
  const project = inFolder("project");
  let archive = "";

  beforeAll(async () => {
    mkdirSync(project);
    await Bun.write(join(project, "package.json"), '{"private":true,"type":"module"}');
    const pack = ["npm", "pack", "--ignore-scripts", "--json", "--pack-destination", folder.path];
    const [{ filename }] = JSON.parse((await run(pack, { cwd: root })).out);
    archive = inFolder(filename);
    // Without retries, an unreachable registry is an error at once rather than a test that hangs.
    const install = ["npm", "install", "--prefer-offline", "--no-audit", "--fetch-retries=0"];
    const { exitCode, errors } = await run([...install, archive], { cwd: project });
    expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: expect.any(String) });
  });

  test("takes neither settings nor code from the folder where it is started", async () => {
    const elsewhere = inFolder("elsewhere");
    await Bun.write(join(elsewhere, ".env"), "PLANTSTORE_TOKEN=plant_of_somebody");
    await Bun.write(join(elsewhere, "bunfig.toml"), 'preload = ["./code.ts"]');
    await Bun.write(join(elsewhere, "code.ts"), "process.exit(7)");
    const launcher = join(project, "node_modules/.bin/plantstore");

    const { exitCode, errors } = await run(
      [launcher, "plants", "list", "--url", "http://127.0.0.1:1"],
      { cwd: elsewhere },
    );

    expect(exitCode).not.toBe(7);
    expect(errors).toContain("There is no token");
  });

  test.skipIf(skipsWithout("curl", "script", "tar"))(
    "does what each block of the README does",
    async () => {
      // Unpacked, with its dependencies at hand, it's as a clone after npm ci.
      const clone = inFolder("package");
      await run(["tar", "-xzf", archive], { cwd: folder.path });
      symlinkSync(join(project, "node_modules"), join(clone, "node_modules"));
      const readme = await Bun.file(join(clone, "README.md")).text();
      const blocks = Array.from(
        readme.matchAll(/^```(?:sh\n|\n(?=\$ ))([\s\S]*?)^```$/gm),
        ([, block = ""]) => block,
      ).filter((block) => !block.includes("npm test"));

      const [start, ...others] = blocks;
      expect(start).toBe("npm ci --omit=dev && npm start\n");
      await serve(["npm", "start"], { cwd: clone }, async (url, token) => {
        const env = { ...environment, PLANTSTORE_TOKEN: token, PLANTSTORE_URL: url };
        for (const block of others) {
          if (block.startsWith("$ ")) await expectOnTerminal(block, { cwd: clone, env });
          else await expectSuccess(block, { cwd: clone, env });
        }
      });
    },
  );

  /** A block with commands and their output: a terminal shows the same. */
  async function expectOnTerminal(block: string, { cwd, env }: Place): Promise<void> {
    const typed = block.match(/(?<=^\$ ).+/gm) ?? [];
    const lines = typed.map((line) => `echo ${Bun.$.escape(`$ ${line}`)}; ${line}`);
    const quiet = { npm_config_loglevel: "silent", npm_config_progress: "false" };
    // Without a terminal, the output would be JSON.
    const command = ["script", "-qec", lines.join("; "), "/dev/null"];
    const { out } = await run(command, { cwd, env: { ...env, ...quiet } });
    expect(out.replaceAll("\r", "")).toBe(block);
  }

  /** A block of commands: they succeed, and so does each request. */
  async function expectSuccess(block: string, { cwd, env = {} }: Place): Promise<void> {
    const commands = block
      .replaceAll("localhost:8080", new URL(env.PLANTSTORE_URL ?? "").host)
      .replaceAll("curl -i", "curl -is")
      .replaceAll(/ ID\b/g, " $(npx plantstore token list | tail -n 1 | cut -d' ' -f1)");
    const { out, errors, exitCode } = await run(["sh", "-euc", commands], { cwd, env });
    expect({ block, errors, exitCode }).toEqual({ block, errors: expect.any(String), exitCode: 0 });
    const requests = block.match(/^ *curl/gm) ?? [];
    expect(out.match(/HTTP\/1.1 2\d\d/g) ?? []).toHaveLength(requests.length);
  }

  test("serves by npx where no install script has run, too, and ends by Ctrl+C", async () => {
    // Puts the runtime back where it was before its install script moved it.
    const modules = join(project, "node_modules");
    const [platform = ""] = readdirSync(join(modules, "@oven"));
    const runtime = join(modules, "bun/bin/bun.exe");
    renameSync(runtime, join(modules, "@oven", platform, "bin/bun"));
    await Bun.write(runtime, "exit 1");
    chmodSync(runtime, 0o755);

    await serve(["npx", "plantstore", "serve"], { cwd: project }, async (url) => {
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
      expect((await fetch(`${url}/docs`)).status).toBe(200);
    });
  });
});

describe("the client's package", () => {
  const home = inFolder("node_modules/plantstore-client");
  let readme = "";
  let service: Awaited<ReturnType<typeof serveHere>>;

  beforeAll(async () => {
    service = await serveHere();
    await buildClientPackage(home);
    readme = await Bun.file(join(home, "README.md")).text();
  });

  afterAll(() => service[Symbol.asyncDispose]());

  test("does the same under Node, as far as the runtime matters", async () => {
    const built = await Bun.build({
      entrypoints: [join(import.meta.dir, "../client/node-runner.ts")],
      target: "node",
      plugins: [{ name: "use the package", setup: usePackage }],
      outdir: folder.path,
      naming: "runner.mjs",
    });
    expect(built.success).toBe(true);
    const names = Object.keys({ ...plainCases, ...troubleCases, ...eventCases });
    const tokens = await makeTokens(service, "node", names.length);

    const child = Bun.spawn(["node", inFolder("runner.mjs")], {
      stdin: new Blob([JSON.stringify({ url: service.url, tokens })]),
      stderr: "pipe",
    });
    const { out, errors } = await readOutput(child);

    expect(errors).toBe("");
    const results = Bun.JSONL.parse(out) as { name: string; faults?: string }[];
    expect(results.filter(({ faults }) => faults !== undefined)).toEqual([]);
    expect(results.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
  });

  describe("has a first screen in its README that", () => {
    let install = "";
    let program = "";

    beforeAll(() => {
      const blocks = Array.from(
        readme.matchAll(/^```(?:sh|js)\n([\s\S]*?)^```$/gm),
        ([, block = ""]) => block,
      );
      [install = "", program = ""] = blocks;
    });

    test("has 40 lines at most", () => {
      const screen = readme.slice(0, readme.indexOf(program) + program.length);

      expect(install).toContain("npm install");
      expect(program).toContain("import");
      expect(screen.split("\n").length).toBeLessThanOrEqual(40);
    });

    test("works as it shows, from npm install to following events", async () => {
      const cwd = inFolder("reader");
      mkdirSync(cwd);
      await Bun.write(join(cwd, "package.json"), '{"private":true}');
      await Bun.write(join(cwd, "plants.mjs"), program);
      const packed = await run(["npm", "pack", "--pack-destination", cwd, home], { cwd });
      expect(packed.exitCode).toBe(0);
      const installed = await run(["sh", "-euc", install], { cwd });
      expect(installed.exitCode).toBe(0);

      const [token = ""] = await makeTokens(service, "reader", 1);
      const env = { ...environment, PLANTSTORE_URL: service.url, PLANTSTORE_TOKEN: token };
      const child = Bun.spawn(["node", "plants.mjs"], { cwd, env, stdout: "pipe", stderr: "pipe" });
      const { written, reading } = await untilItSays(/(plant\.deleted) .+\n/, child);
      child.kill("SIGINT");
      await reading;

      expect(written.errors).toBe("");
      expect(written.out).toBe(`1 Monstera deliciosa (living room)
What happens in the garden reader-0, until Ctrl+C:
reader-0 plant.created Monstera deliciosa (living room)
reader-0 plant.replaced Monstera deliciosa (hall)
reader-0 plant.deleted Monstera deliciosa (hall)
`);
    });
  });

  describe("has a manifest", () => {
    let own: Record<string, unknown> = {};

    beforeAll(async () => {
      own = await Bun.file(join(home, "package.json")).json();
    });

    test("with its name and the product's version", () => {
      expect(own.name).toBe("plantstore-client");
      expect(own.version).toBe(manifest.version);
    });

    test("without dependencies", () => {
      expect(Object.keys(own).filter((key) => /dependencies/i.test(key))).toEqual([]);
    });

    test("that exports what its fields main and types name", () => {
      expect(own.exports).toEqual({ types: own.types, default: own.main });
    });
  });

  test("has documentation whose recipe keeps a copy of a garden current", async () => {
    const [, recipe = ""] = /^```ts\n(import [^`]*function sync\([^`]*)^```$/m.exec(readme) ?? [];
    const path = inFolder("sync.ts");
    await Bun.write(path, recipe);
    const { sync } = await import(path);
    const { PlantStore } = await import(join(home, "plant-store.js"));
    const [token] = await makeTokens(service, "sync", 1);
    const store = new PlantStore({ url: service.url, token });
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
    controller.abort();
    expect(await syncing).toBe("AbortError");
  });

  test("has documentation whose every block TypeScript accepts, with the package's types", async () => {
    const [, whole = ""] = /^```js\n([\s\S]*?)^```$/m.exec(readme) ?? [];
    /** What opens a store; the blocks use it. */
    const [, opening = ""] = /^([\s\S]*?const store = .+\n)/.exec(whole) ?? [];
    const blocks = [...readme.matchAll(/^```ts\n([^`]*)^```$/gm)]
      .map(([, block = ""]) => block)
      // What a generator makes: see generated-clients.test.ts.
      .filter((block) => !block.includes('"./schema"'));
    expect(blocks.length).toBeGreaterThan(4);
    await Bun.write(inFolder("package.json"), '{"type":"module"}');
    const files: string[] = [];
    for (const [index, block] of [whole, ...blocks].entries()) {
      const isWhole = /^(?:\/\/.*\n)?import/.test(block);
      files.push(`use-${index}.ts`);
      await Bun.write(inFolder(`use-${index}.ts`), isWhole ? block : `${opening}{\n${block}}\n`);
    }

    const compiler = join(root, "node_modules/.bin/tsc");
    const target = ["--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom"];
    const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")];
    const compiled = await run([compiler, "--strict", "--noEmit", ...target, ...types, ...files], {
      cwd: folder.path,
    });

    expect(compiled).toEqual({ exitCode: 0, out: "", errors: "" });
  });
});

/** The cases use the sources; under Node, the package takes their place. */
function usePackage({ onResolve }: Bun.PluginBuilder): void {
  const use = { path: "plantstore-client", external: true };
  onResolve({ filter: /client\/plant-store\.ts$/ }, () => use);
}
