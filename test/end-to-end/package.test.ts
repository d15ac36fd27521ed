/** The packed npm package in an empty project, as whoever installs it has it. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeTemporaryFolder } from "../temporary-folder.ts";
import { waitFor } from "./running-service.ts";

const root = join(import.meta.dir, "../..");
const folder = makeTemporaryFolder();
const project = join(folder.path, "project");
/** Nothing of the npm that runs these tests, but for where it finds packages. */
const environment = {
  PATH: (process.env.PATH ?? "")
    .split(":")
    .filter((path) => !path.includes("node_modules"))
    .join(":"),
  HOME: process.env.HOME ?? "",
  ...Object.fromEntries(
    Object.entries(process.env).filter(([name]) => /^npm_config_registry$|_proxy$/i.test(name)),
  ),
};
let files: string[] = [];

async function run(command: readonly string[], cwd = project) {
  const child = Bun.spawn([...command], {
    cwd,
    env: environment,
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { exitCode: await child.exited, out, errors };
}

beforeAll(async () => {
  mkdirSync(project);
  const packed = await run(["npm", "pack", "--json", "--pack-destination", folder.path], root);
  const [{ filename, files: listed }] = JSON.parse(packed.out);
  files = listed.map(({ path }: { path: string }) => path);
  await Bun.write(join(project, "package.json"), '{"private":true,"type":"module"}');
  const archive = join(folder.path, filename);
  const installed = await run(["npm", "install", "--prefer-offline", "--no-audit", archive]);
  expect({ ...installed, out: "" }).toMatchObject({ exitCode: 0 });
}, 120_000);
afterAll(() => folder[Symbol.dispose]());

describe("the package", () => {
  test("holds what it needs and nothing else", () => {
    const folders = new Set(files.map((path) => path.split("/").slice(0, -1).join("/")));
    expect(
      [...folders].filter((path) => !/^(?:|bin|(?:docs|deploy|src)\b.*|dist\/client)$/.test(path)),
    ).toEqual([]);
    expect(files.filter((path) => /\.test\.|\.png$|\.map$/.test(path))).toEqual([]);
    for (const path of ["README.md", "LICENSE", "CHANGELOG.md", "bin/plantstore", "src/main.ts"]) {
      expect(files).toContain(path);
    }
  });

  test("brings what its pages for operators and callers name, but for what a clone is needed for", async () => {
    const pages = files.filter((path) => /^(?:docs\/|SECURITY)/.test(path));
    const named = await Promise.all(
      pages.map(async (page) => {
        const text = await Bun.file(join(root, page)).text();
        return [...text.matchAll(/\]\(([\w./-]+)[#)]/g)].map(([, to = ""]) =>
          join(dirname(page), to),
        );
      }),
    );
    const ofClone = /^(?:bench\/|deploy\/(?:README.md|compose.yaml)$)/;
    expect(named.flat().filter((path) => !files.includes(path) && !ofClone.test(path))).toEqual([]);
    expect(files).toContain("SECURITY.md");
  });

  test("serves by npx, and ends by Ctrl+C", async () => {
    const child = Bun.spawn(["npx", "plantstore", "serve", "--port", "0"], {
      cwd: project,
      env: environment,
      stdout: "pipe",
      stderr: "ignore",
      detached: true,
    });
    let out = "";
    const reading = (async () => {
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) out += text;
    })();
    const url = await waitFor(
      () => /"url":"([^"]+)"/.exec(out)?.[1],
      () => child.exitCode !== null && `It ended: ${out}`,
    );
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    expect((await fetch(`${url}/docs`)).status).toBe(200);
    // A terminal tells the whole group.
    process.kill(-child.pid, "SIGINT");
    await reading;
    await child.exited;
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
      elsewhere,
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

  const use = `
    import { PlantStore, PlantStoreProblem } from "plantstore/client";
    const store = new PlantStore({ url: "http://127.0.0.1:1", token: "t" });
    export async function add(): Promise<bigint> {
      const { id, name } = await store.create({ name: "Fern" });
      const shown: string = name;
      return shown === "" ? 0n : id;
    }
    export const isKnown = (error: unknown): boolean => error instanceof PlantStoreProblem;
  `;

  for (const [module, moduleResolution] of [
    ["preserve", "bundler"],
    ["nodenext", "nodenext"],
  ] as const) {
    test(`gives its client's types to TypeScript under ${moduleResolution}`, async () => {
      const options = { strict: true, noEmit: true, types: [], module, moduleResolution };
      const settings = { compilerOptions: options, files: ["use.ts"] };
      await Bun.write(join(project, "use.ts"), use);
      await Bun.write(join(project, "tsconfig.json"), JSON.stringify(settings));
      const compiler = join(root, "node_modules/.bin/tsc");
      expect(await run([compiler, "-p", "."])).toEqual({ exitCode: 0, out: "", errors: "" });
    });
  }

  test("gives its client to Node", async () => {
    const script =
      'import { PlantStore } from "plantstore/client"; process.stdout.write(typeof PlantStore)';
    const { out } = await run(["node", "--input-type=module", "--eval", script]);
    expect(out).toBe("function");
  });
});
