/**
 * `npm run release:check [-- --quick]`: everything that must hold before a version goes out. Each
 * step says in one line what it found; the first that fails ends it. Leaves the SBOM in dist/.
 */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import manifest from "../package.json" with { type: "json" };
import lock from "../package-lock.json" with { type: "json" };
import { type PageSource, readConsole, readReference } from "../src/http/page-sources.ts";
import { build } from "./build.ts";
import { buildClientPackage } from "./build-client.ts";

const root = join(import.meta.dir, "..");
const dist = join(root, "dist");
const { version } = manifest;

/** Those that ask for no more than their text and a name. */
const licenses = new Set([
  "MIT",
  "ISC",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "Apache-2.0",
  "0BSD",
  "CC0-1.0",
]);

/** What users download; more of it must be a decision. */
const budgets = {
  executable: 130e6,
  package: 500e3,
  /** 38 KB at once, the rest with the first import or export. */
  console: 60e3,
  reference: 500e3,
  client: 6e3,
};

interface Step {
  readonly name: string;
  /** What it found, or it fails. */
  readonly run: () => Promise<string>;
}

const steps: readonly Step[] = [
  { name: "version", run: checkVersion },
  { name: "licenses", run: checkLicenses },
  { name: "SBOM", run: writeBillOfMaterials },
  { name: "sizes", run: checkSizes },
  { name: "tests", run: () => runScript("test") },
  {
    name: "benchmark",
    run: () => runScript("bench", "list", "create", "postgres-create", "--quick"),
  },
];

async function checkVersion(): Promise<string> {
  const form = /^\d+\.\d+\.\d+(?:-[\w.]+)?$/;
  if (!form.test(version)) throw new Error(`${version} is no semantic version.`);
  const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  if (
    !new RegExp(`^## ${version.replaceAll(".", "\\.")} - \\d{4}-\\d{2}-\\d{2}$`, "m").test(
      changelog,
    )
  ) {
    throw new Error(`CHANGELOG.md has no "## ${version} - YYYY-MM-DD".`);
  }
  if (!existsSync(join(root, "test/upgrades/versions", version))) {
    throw new Error(`The data of ${version} are not kept: npm run release:keep-data.`);
  }
  return `${version}, in the changelog, its data kept for later upgrades`;
}

async function checkLicenses(): Promise<string> {
  const installed = Object.entries(lock.packages as Record<string, LockedPackage>).filter(
    ([path, { dev }]) => path !== "" && !dev,
  );
  const strangers = installed.filter(([, { license = "none" }]) => !isPermitted(license));
  if (strangers.length > 0) {
    throw new Error(strangers.map(([path, { license }]) => `${path}: ${license}`).join("; "));
  }
  return `${installed.length} packages under ${[...new Set(installed.map(([, { license }]) => license))].join(", ")}`;
}

interface LockedPackage {
  readonly dev?: boolean;
  readonly license?: string;
}

/** Of several that are offered, one is enough. */
function isPermitted(expression: string): boolean {
  return expression
    .replace(/[()]/g, "")
    .split(" OR ")
    .some((name) => licenses.has(name));
}

async function writeBillOfMaterials(): Promise<string> {
  const text = await Bun.$`npm sbom --sbom-format cyclonedx --omit dev`.cwd(root).quiet().text();
  const { bomFormat, specVersion, components } = JSON.parse(text);
  if (bomFormat !== "CycloneDX" || components.length === 0) throw new Error("It is empty.");
  mkdirSync(dist, { recursive: true });
  writeFileSync(join(dist, "plantstore.cdx.json"), text);
  return `dist/plantstore.cdx.json, CycloneDX ${specVersion}, ${components.length} components`;
}

async function checkSizes(): Promise<string> {
  const executable = join(dist, "plantstore");
  await build(executable);
  const client = join(dist, "plantstore-client");
  await buildClientPackage(client);
  const packed = await Bun.$`npm pack --dry-run --ignore-scripts --json`.cwd(root).quiet().json();
  const sizes = {
    executable: statSync(executable).size,
    package: packed[0].size as number,
    console: measurePage(await readConsole()),
    reference: measurePage(await readReference()),
    client: await measureBundle(join(client, "plant-store.js")),
  };
  for (const [name, size] of Object.entries(sizes)) {
    const budget = budgets[name as keyof typeof budgets];
    if (size > budget) throw new Error(`The ${name} has ${size} bytes, and may have ${budget}.`);
  }
  return Object.entries(sizes)
    .map(([name, size]) => `${name} ${(size / 1e3).toFixed(1)} kB`)
    .join(", ");
}

/** Everything that a page loads, compressed as the service sends it. */
function measurePage({ page, style, script, chunks = {}, library = "" }: PageSource): number {
  const texts = [page, style, script, library, ...Object.values(chunks)];
  return texts.reduce((sum, text) => sum + gzipSync(text, { level: 9 }).length, 0);
}

/** As a page loads it that its bundler has minified. */
async function measureBundle(entrypoint: string): Promise<number> {
  const { outputs } = await Bun.build({
    entrypoints: [entrypoint],
    target: "browser",
    minify: true,
  });
  return gzipSync((await outputs[0]?.text()) ?? "").length;
}

async function runScript(name: string, ...flags: string[]): Promise<string> {
  const child = Bun.spawn(["npm", "run", "-s", name, "--", ...flags], {
    cwd: root,
    stdout: "inherit",
    stderr: "inherit",
  });
  const exitCode = await child.exited;
  if (exitCode !== 0) throw new Error(`npm run ${name} ended with ${exitCode}.`);
  return `npm run ${[name, ...flags].join(" ")}`;
}

/** Without what takes minutes. */
const isQuick = process.argv.includes("--quick");
const slow = new Set(["tests", "benchmark"]);

for (const { name, run } of steps) {
  if (isQuick && slow.has(name)) continue;
  try {
    process.stdout.write(`ok    ${name}: ${await run()}\n`);
  } catch (error) {
    process.stdout.write(`fails ${name}: ${error instanceof Error ? error.message : error}\n`);
    process.exit(1);
  }
}
