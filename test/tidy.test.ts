/** The house rules: which way imports point, how files begin, and what documents may say. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { renderHeadline, renderReport } from "../bench/report.ts";
import manifest from "../package.json" with { type: "json" };
import lock from "../package-lock.json" with { type: "json" };

const root = join(import.meta.dir, "..");

const listFiles = (pattern: string): string[] =>
  [...new Bun.Glob(pattern).scanSync(root)].filter((path) => !path.includes("node_modules"));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
/** The groups of each match. */
const findAll = (text: string, pattern: RegExp): string[][] =>
  [...text.matchAll(pattern)].map(([, ...groups]) => groups.map((each) => each ?? ""));

const sources = listFiles("{src,client,console}/**/*.{ts,tsx}").filter(
  (path) => !/\.test\.tsx?$/.test(path),
);
const allCode = listFiles("{src,client,console,test,testing,proofs,deploy}/**/*.{ts,tsx}");

/** A room is a folder of its own, a folder under src/, or a file at its top. */
function roomOf(path: string): string {
  if (path.startsWith("client/files/")) return "client/files";
  const [top = "", first = "", second] = path.split("/");
  if (top !== "src") return top;
  return second === undefined ? first.replace(/\.ts$/, "") : first;
}

/** What each room may know. Calls run inward, and nothing inside knows what is outside. */
const arrows: Readonly<Record<string, string>> = {
  main: "cli",
  cli: "config server log version json-text auth storage domain client client/files",
  config: "domain storage",
  server: "async config log metrics version auth http storage domain",
  metrics: "storage",
  http: "async log metrics json-text auth domain",
  console: "auth client domain client/files",
  "client/files": "client domain json-text",
  auth: "async domain",
  storage: "async domain",
  async: "domain",
};

/** Packages and runtime modules that a room may import; a room that is not named may import any. */
const packages: Readonly<Record<string, RegExp>> = {
  domain: /^valibot$/,
  auth: /^jose$/,
  client: /^$/,
  console: /^(?:preact(?:\/hooks)?|@preact\/signals)$/,
};

test("imports point inward only", () => {
  const isWrong = (path: string, name: string): boolean => {
    const room = roomOf(path);
    if (!name.startsWith(".")) return packages[room]?.test(name) === false;
    const target = join(dirname(path), name);
    const other = roomOf(target);
    const isRoom = /^(?:src|client|console)\//.test(target);
    return isRoom && other !== room && !arrows[room]?.split(" ").includes(other);
  };
  const imports = sources.flatMap((path) =>
    findAll(read(path), /(?:from|import)\s*\(?\s*"([^"]+)"/g).map(([name = ""]) => [path, name]),
  );
  expect(imports.filter(([path = "", name = ""]) => isWrong(path, name))).toEqual([]);
});

test("files open with a sentence about their job", () => {
  const opening = /^(?:#!.*\n)?(?:\/\/\/.*\n)?\/\*\*[\s*]+[A-Z`][\s\S]*?[.:]\s*\*\//;
  expect(allCode.filter((path) => !opening.test(read(path)))).toEqual([]);
});

describe("documents", () => {
  const documents = ["*.md", "{docs,bench,deploy}/**/*.md"].flatMap(listFiles);

  /** The anchors of a page's headings, as GitHub makes them. */
  const anchorsOf = (path: string): string[] =>
    findAll(read(path), /^#+ (.+)$/gm).map(([heading = ""]) =>
      heading
        .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-"),
    );

  test.each(documents)(
    "%s links only to what is there, and names npm scripts that there are",
    (path) => {
      const links = findAll(read(path), /\]\((?!https?:|mailto:)([^)#]*)(?:#([^)]+))?\)/g);
      const broken = links.filter(([file, anchor]) => {
        const target = file ? join(dirname(path), file) : path;
        if (!existsSync(join(root, target))) return true;
        return anchor && !anchorsOf(target).includes(anchor);
      });
      expect(broken).toEqual([]);
      const scripts = findAll(read(path), /(?:^|`|&& )npm (?:run (?:-s )?)?([a-z][\w:-]*)/gm);
      expect([
        "audit",
        "ci",
        "install",
        "outdated",
        "pack",
        ...Object.keys(manifest.scripts),
      ]).toEqual(expect.arrayContaining(scripts.flat()));
    },
  );

  test("give the benchmark's figures, of this minor version, with the version they are from", () => {
    const results = JSON.parse(read("bench/results.json"));
    expect(read("docs/benchmarks.md")).toContain(renderReport(results));
    expect(read("README.md").replaceAll(/\s+/g, " ")).toContain(renderHeadline(results) ?? "");
    const measured: string = results.contenders[0].version;
    for (const path of ["docs/scaling.md", "docs/operating.md"])
      expect(read(path)).toContain(measured);
    const minorOf = (version: string) => version.split(".").slice(0, 2).join(".");
    expect(minorOf(measured)).toBe(minorOf(manifest.version));
  });

  test("map every folder of the source, and name files that exist", () => {
    const text = read("ARCHITECTURE.md");
    const folders = new Set(sources.map((path) => basename(dirname(path))));
    expect([...folders].filter((name) => !text.includes(`${name}/`))).toEqual([]);
    const files = listFiles("{src,client,console,test,testing,proofs,scripts}/**/*.ts");
    const names = new Set(files.map((path) => basename(path)));
    const named = findAll(text, /(?<![\w*-])([\w.-]+\.ts)\b/g).flat();
    expect(named.filter((name) => !names.has(name))).toEqual([]);
  });

  test("give every limit as the code has it", () => {
    const units: Record<string, number> = { s: 1_000, h: 3_600_000, KiB: 2 ** 10, MiB: 2 ** 20 };
    const rows = findAll(
      read("ARCHITECTURE.md"),
      /^\| .+? \| ([\d, a-zA-Z]+) \| (`[\w, `]+`) \| (`[\w./, `-]+`) \|$/gm,
    );
    const documented: [string, number][] = [];
    const inCode: [string, number][] = [];
    for (const [values = "", ...quoted] of rows) {
      const [names = [], files = []] = quoted.map((text) => findAll(text, /`([^`]+)`/g).flat());
      for (const [index, name] of names.entries()) {
        const [number = "", unit = ""] = (values.split(", ")[index] ?? "").split(" ");
        const scale = name.endsWith("Seconds") ? 1 : (units[unit] ?? 1);
        documented.push([name, Number(number.replaceAll(",", "")) * scale]);
        const code = read(`src/${files[index] ?? files[0]}`);
        const [[product = ""] = []] = findAll(
          code,
          RegExp(`\\b${name}(?: =|:) ([\\d_* ]+)[;,]`, "g"),
        );
        const factors = product.replaceAll("_", "").split("*").map(Number);
        inCode.push([name, factors.reduce((all, each) => all * each, 1)]);
      }
    }
    expect(documented).toEqual(inCode);
    expect(documented.length).toBeGreaterThan(30);
  });
});

test("every dependency is pinned exactly", () => {
  const ranges = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });
  expect(ranges.filter(([, range]) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(range))).toEqual([]);
});

test("npm knows of every install script whether it may run", () => {
  const packages = lock.packages as Record<string, { hasInstallScript?: boolean }>;
  const withScripts = Object.keys(packages).filter((path) => packages[path]?.hasInstallScript);
  const names = withScripts.map((path) => path.replace(/^.*node_modules\//, ""));
  expect(Object.keys(manifest.allowScripts)).toEqual(expect.arrayContaining(names));
});

test("no installation is reported to others, by any version of npm", () => {
  expect(manifest.allowScripts["@scarf/scarf"]).toBe(false);
  // npm 10 runs the script, which looks here first.
  expect(manifest.scarfSettings.enabled).toBe(false);
});
