/** What users download, built once: the single executable, and the npm package in a new project. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import manifest from "../../package.json" with { type: "json" };
import { readOutput, untilItSays } from "../end-to-end/running-service.ts";
import { makeDatabase } from "../postgres-server.ts";
import { makeTemporaryFolder } from "../temporary-folder.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
const folder = makeTemporaryFolder();
const home = join(folder.path, "home");
const project = join(folder.path, "project");
const executable = join(root, "dist/plantstore");
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

/** Uses a service at its address, then stops it as Ctrl+C does; returns what it wrote. */
async function serve(
  command: readonly string[],
  options: Required<Options>,
  use: (url: string) => Promise<void>,
): Promise<string> {
  const child = Bun.spawn([...command, "serve", "--port", "0"], {
    ...options,
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  const { found, written, reading } = await untilItSays(/"url":"([^"]+)"/, child);
  try {
    await use(found);
  } finally {
    // A terminal signals the whole group.
    process.kill(-child.pid, "SIGINT");
  }
  await reading;
  await child.exited;
  return written.out;
}

/** Both are built here; the sizes need them. */
test("this version could be released, but for what takes minutes", async () => {
  const script = join(root, "scripts/release-check.ts");
  const { out } = await run([process.execPath, script, "--quick"], { cwd: root });
  expect(
    out
      .trimEnd()
      .split("\n")
      .map((line) => line.split(":")[0]),
  ).toEqual(["ok    version", "ok    licenses", "ok    SBOM", "ok    sizes"]);
});

describe("the executable, with nothing of this machine around it", () => {
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
      const out = await serve([executable], options, async (url) => {
        const access = { PLANTSTORE_URL: url, PLANTSTORE_TOKEN: token };
        expect((await execute(["plants", "add", "Fern", "--id", "7"], access)).exitCode).toBe(0);
        expect((await execute(["plants", "list"], access)).out).toContain("Fern");
        expect((await execute(["plants", "delete", "7"], access)).exitCode).toBe(0);
        expect((await execute(["health", "--url", url])).out).toBe("ready\n");
        if (engine === "SQLite") await loadPages(url);
      });
      expect(out).toContain('"event":"stopped"');
      expect(readdirSync(home)).toEqual(["data"]);
    },
  );
});

describe("the npm package", () => {
  let files: string[] = [];

  beforeAll(async () => {
    mkdirSync(project);
    const pack = ["npm", "pack", "--ignore-scripts", "--json", "--pack-destination", folder.path];
    const [{ filename, files: listed }] = JSON.parse((await run(pack, { cwd: root })).out);
    files = listed.map(({ path }: { path: string }) => path);
    await Bun.write(join(project, "package.json"), '{"private":true,"type":"module"}');
    const archive = join(folder.path, filename);
    // Without retries, an unreachable registry is an error at once rather than a test that hangs.
    const flags = ["--prefer-offline", "--no-audit", "--fetch-retries=0"];
    const installed = await run(["npm", "install", ...flags, archive]);
    expect({ ...installed, out: "" }).toMatchObject({ exitCode: 0 });
  });

  test("holds what it needs and nothing else", () => {
    const folders = new Set(files.map((path) => path.split("/").slice(0, -1).join("/")));
    expect(
      [...folders].filter(
        (path) => !/^(?:|bin|(?:docs|deploy|src|client|console)\b.*)$/.test(path),
      ),
    ).toEqual([]);
    expect(files.filter((path) => /\.test\.|\.png$|\.map$/.test(path))).toEqual([]);
    for (const path of ["README.md", "LICENSE", "CHANGELOG.md", "bin/plantstore", "src/main.ts"]) {
      expect(files).toContain(path);
    }
  });

  test("serves by npx, and ends by Ctrl+C", async () => {
    const options = { cwd: project, env: environment };
    const out = await serve(["npx", "plantstore"], options, async (url) => {
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
      expect((await fetch(`${url}/docs`)).status).toBe(200);
    });
    expect(out).toContain('"event":"stopped"');
  });

  test("takes neither settings nor code from the folder where it is started", async () => {
    const elsewhere = join(folder.path, "elsewhere");
    await Bun.write(join(elsewhere, ".env"), "PLANTSTORE_TOKEN=plant_of_somebody");
    await Bun.write(join(elsewhere, "bunfig.toml"), 'preload = ["./code.ts"]');
    await Bun.write(join(elsewhere, "code.ts"), "process.exit(7)");
    const launcher = join(project, "node_modules/.bin/plantstore");
    const { exitCode, errors } = await run(
      [launcher, "plants", "list", "--url", "http://127.0.0.1:1"],
      { cwd: elsewhere },
    );
    expect(exitCode).not.toBe(7);
    expect(errors).toContain("PLANTSTORE_TOKEN");
  });

  test("starts by itself where no install script has run", async () => {
    const modules = join(project, "node_modules");
    const [platform = ""] = readdirSync(join(modules, "@oven"));
    const runtime = join(modules, "bun/bin/bun.exe");
    renameSync(runtime, join(modules, "@oven", platform, "bin/bun"));
    await Bun.write(runtime, "exit 1");
    chmodSync(runtime, 0o755);
    expect((await run(["npx", "plantstore", "--version"])).exitCode).toBe(0);
  });
});

afterAll(() => folder[Symbol.dispose]());
