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
import { makeDatabase } from "../../testing/postgres-server.ts";
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
const inFolder = (name: string) => join(folder.path, name);
const project = inFolder("project");
/** Nothing of the npm that runs these tests, except how it reaches packages. */
const environment = {
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

interface Options {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
}

function run(command: readonly string[], { cwd = project, env = environment }: Options = {}) {
  return readOutput(Bun.spawn([...command], { cwd, env, stdout: "pipe", stderr: "pipe" }));
}

/** Uses a service on any port, then stops it as Ctrl+C does. It ends as it should. */
async function serve(
  command: readonly string[],
  { cwd, env }: Required<Options>,
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

/** Both are built here; the sizes need them. */
test("this version could be released, but for what takes minutes", async () => {
  const script = join(root, "scripts/release-check.ts");
  const { out } = await run([process.execPath, script, "--quick"], { cwd: root });
  const steps = ["ok    version", "ok    licenses", "ok    SBOM", "ok    sizes"];
  expect(Array.from(out.matchAll(/^\w+ +\w+/gm), String)).toEqual(steps);
});

describe("the executable, with nothing of this machine around it", () => {
  const executable = join(root, "dist/plantstore");
  const home = inFolder("home");
  beforeAll(() => void mkdirSync(home));

  const execute = (args: readonly string[], env: Record<string, string> = {}) =>
    run([executable, ...args], { cwd: home, env });

  /** The console, the API reference and all that they load. */
  async function loadPages(url: string): Promise<void> {
    for (const path of ["/", "/docs"]) {
      const page = await fetch(url + path);
      expect(page.status).toBe(200);
      const assets = (await page.text()).match(/assets\/[\w.-]+/g) ?? [];
      expect(assets.length).toBeGreaterThan(1);
      for (const asset of assets) expect((await fetch(`${url}/${asset}`)).status).toBe(200);
    }
  }

  test.each(["SQLite", "PostgreSQL"])(
    "serves plants and pages from %s, on two threads",
    async (engine) => {
      await using database = engine === "SQLite" ? undefined : await makeDatabase();
      const env: Record<string, string> = database ? { PLANTSTORE_DATABASE: database.url } : {};
      expect((await execute(["--version"])).out).toContain(manifest.version);
      const token = (await execute(["token", "create", "ada"], env)).out.trim();
      const options = { cwd: home, env: { ...env, PLANTSTORE_THREADS: "2" } };
      await serve([executable, "serve"], options, async (url) => {
        const access = { PLANTSTORE_URL: url, PLANTSTORE_TOKEN: token };
        expect((await execute(["plants", "add", "Fern", "--id", "7"], access)).exitCode).toBe(0);
        expect((await execute(["plants", "list"], access)).out).toContain("Fern");
        expect((await execute(["plants", "delete", "7"], access)).exitCode).toBe(0);
        expect((await execute(["health", "--url", url])).out).toBe("ready\n");
        if (engine === "SQLite") await loadPages(url);
      });
      expect(readdirSync(home)).toEqual(["data"]);
    },
  );
});

describe("the npm package", () => {
  let archive = "";

  beforeAll(async () => {
    mkdirSync(project);
    const pack = ["npm", "pack", "--ignore-scripts", "--json", "--pack-destination", folder.path];
    const [{ filename }] = JSON.parse((await run(pack, { cwd: root })).out);
    await Bun.write(join(project, "package.json"), '{"private":true,"type":"module"}');
    archive = inFolder(filename);
    // Without retries, an unreachable registry is an error at once rather than a test that hangs.
    const flags = ["--prefer-offline", "--no-audit", "--fetch-retries=0"];
    const installed = await run(["npm", "install", ...flags, archive]);
    expect({ ...installed, out: "" }).toMatchObject({ exitCode: 0 });
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
      const cwd = inFolder("package");
      await run(["tar", "-xzf", archive], { cwd: folder.path });
      symlinkSync(join(project, "node_modules"), join(cwd, "node_modules"));
      const readme = await Bun.file(join(cwd, "README.md")).text();
      const [start = "", ...others] = Array.from(
        readme.matchAll(/^```(?:sh\n|\n(?=\$ ))([\s\S]*?)^```$/gm),
        ([, block = ""]) => block,
      ).filter((block) => !block.includes("npm test"));
      expect(start).toBe("npm ci --omit=dev && npm start\n");
      const use = async (url: string, token: string) => {
        const env = { ...environment, PLANTSTORE_TOKEN: token, PLANTSTORE_URL: url };
        for (const block of others) await runBlock(block, { cwd, env });
      };
      await serve(["npm", "start"], { cwd, env: environment }, use);
    },
  );

  async function runBlock(block: string, { cwd, env }: Required<Options>): Promise<void> {
    if (block.startsWith("$ ")) {
      // What a terminal shows. Elsewhere it would be JSON.
      const typed = block.match(/(?<=^\$ ).+/gm) ?? [];
      const lines = typed.map((line) => `echo ${Bun.$.escape(`$ ${line}`)}; ${line}`);
      const quiet = { npm_config_loglevel: "silent", npm_config_progress: "false" };
      const command = ["script", "-qec", lines.join("; "), "/dev/null"];
      const { out } = await run(command, { cwd, env: { ...env, ...quiet } });
      expect(out.replaceAll("\r", "")).toBe(block);
      return;
    }
    const commands = block
      .replaceAll("localhost:8080", new URL(env.PLANTSTORE_URL ?? "").host)
      .replaceAll("curl -i", "curl -is")
      .replaceAll(/ ID\b/g, " $(npx plantstore token list | tail -n 1 | cut -d' ' -f1)");
    const { out, errors, exitCode } = await run(["sh", "-euc", commands], { cwd, env });
    expect({ block, errors, exitCode }).toMatchObject({ block, exitCode: 0 });
    const answered = out.match(/HTTP\/1.1 2\d\d/g)?.length ?? 0;
    expect(answered).toBe(block.match(/^ *curl/gm)?.length ?? 0);
  }

  test("serves by npx where no install script has run, too, and ends by Ctrl+C", async () => {
    const modules = join(project, "node_modules");
    const [platform = ""] = readdirSync(join(modules, "@oven"));
    const runtime = join(modules, "bun/bin/bun.exe");
    renameSync(runtime, join(modules, "@oven", platform, "bin/bun"));
    await Bun.write(runtime, "exit 1");
    chmodSync(runtime, 0o755);
    const options = { cwd: project, env: environment };
    await serve(["npx", "plantstore", "serve"], options, async (url) => {
      for (const path of ["/readyz", "/docs"]) expect((await fetch(url + path)).status).toBe(200);
    });
  });
});

describe("the client's package", () => {
  const home = inFolder("node_modules/plantstore-client");
  const read = (name: string) => Bun.file(join(home, name)).text();
  let service: Awaited<ReturnType<typeof serveHere>>;

  beforeAll(async () => {
    service = await serveHere();
    await buildClientPackage(home);
  });
  afterAll(() => service[Symbol.asyncDispose]());

  const names = Object.keys({ ...plainCases, ...troubleCases, ...eventCases });

  test("does the same under Node, as far as the runtime matters", async () => {
    const built = await Bun.build({
      entrypoints: [join(import.meta.dir, "../client/node-runner.ts")],
      target: "node",
      plugins: [{ name: "use the package", setup: usePackage }],
      outdir: folder.path,
      naming: "runner.mjs",
    });
    expect(built.success).toBe(true);
    const world = JSON.stringify({
      url: service.url,
      tokens: await makeTokens(service, "node", names.length),
    });
    const child = Bun.spawn(["node", inFolder("runner.mjs")], {
      stdin: new Blob([world]),
      stderr: "pipe",
    });
    const { out, errors } = await readOutput(child);
    expect(errors).toBe("");
    const results = out.trimEnd().split("\n");
    expect(results.map((line) => JSON.parse(line))).toEqual(
      expect.arrayContaining(names.map((name) => ({ name }))),
    );
  });

  test("does what the first screen of its README shows, from npm install to following events", async () => {
    const readme = await read("README.md");
    const blocks = [...readme.matchAll(/^```(?:sh|js)\n([\s\S]*?)^```$/gm)].slice(0, 2);
    const [install = "", program = ""] = blocks.map(([, block]) => block);
    const screen = readme.slice(0, readme.indexOf(program) + program.length);
    expect(screen.split("\n").length).toBeLessThanOrEqual(40);
    const cwd = inFolder("reader");
    mkdirSync(cwd);
    await Bun.write(join(cwd, "package.json"), '{"private":true}');
    await Bun.write(join(cwd, "plants.mjs"), program);
    const pack = ["npm", "pack", "--pack-destination", cwd, home];
    for (const command of [pack, ["sh", "-euc", install]]) {
      expect((await run(command, { cwd })).exitCode).toBe(0);
    }
    const [token = ""] = await makeTokens(service, "reader", 1);
    const env = { ...environment, PLANTSTORE_URL: service.url, PLANTSTORE_TOKEN: token };
    const child = Bun.spawn(["node", "plants.mjs"], { cwd, env, stdout: "pipe", stderr: "pipe" });
    const { written, reading } = await untilItSays(/(plant\.deleted) .+\n/, child);
    child.kill("SIGINT");
    await reading;
    const { user } = await (await service.call("GET /me", { token })).json();
    expect(written).toEqual({
      errors: "",
      out: `1 Monstera deliciosa (living room)
What happens in the garden ${user}, until Ctrl+C:
${user} plant.created Monstera deliciosa (living room)
${user} plant.replaced Monstera deliciosa (hall)
${user} plant.deleted Monstera deliciosa (hall)
`,
    });
  });

  test("has the product's version, and no dependencies", async () => {
    const own = JSON.parse(await read("package.json"));
    expect([own.name, own.version]).toEqual(["plantstore-client", manifest.version]);
    expect(Object.keys(own).filter((key) => /dependencies/i.test(key))).toEqual([]);
    expect({ types: own.types, default: own.main }).toEqual(own.exports);
  });

  test("its documentation keeps a copy of a garden current", async () => {
    const [, recipe = ""] =
      /^```ts\n(import [^`]*function sync\([^`]*)^```$/m.exec(await read("README.md")) ?? [];
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

  test("gives its types to TypeScript, which accepts each block of its documentation", async () => {
    const readme = await read("README.md");
    const [, whole = ""] = /^```js\n([\s\S]*?)^```$/m.exec(readme) ?? [];
    const [, opening = ""] = /^([\s\S]*?const store = .+\n)/.exec(whole) ?? [];
    const blocks = [...readme.matchAll(/^```ts\n([^`]*)^```$/gm)]
      .map(([, block = ""]) => block)
      // What a generator makes: see generated-clients.test.ts.
      .filter((block) => !block.includes('"./schema"'));
    expect(blocks.length).toBeGreaterThan(4);
    await Bun.write(inFolder("package.json"), '{"type":"module"}');
    const programs = [whole, ...blocks].map(async (block, index) => {
      const isWhole = /^(?:\/\/.*\n)?import/.test(block);
      await Bun.write(inFolder(`use-${index}.ts`), isWhole ? block : `${opening}{\n${block}}\n`);
      return `use-${index}.ts`;
    });
    const flags = "--strict --noEmit --module nodenext --target es2022 --lib es2022,dom".split(" ");
    const compiler = join(root, "node_modules/.bin/tsc");
    const types = ["--types", "node", "--typeRoots", join(root, "node_modules/@types")];
    const command = [compiler, ...flags, ...types, ...(await Promise.all(programs))];
    const compiled = await run(command, { cwd: folder.path });
    expect(compiled).toEqual({ exitCode: 0, out: "", errors: "" });
  });
});

/** The cases use the sources; under Node, the package takes their place. */
function usePackage({ onResolve }: Bun.PluginBuilder): void {
  const use = { path: "plantstore-client", external: true };
  onResolve({ filter: /client\/plant-store\.ts$/ }, () => use);
}
