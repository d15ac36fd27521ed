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

/** A room is a folder of its own, a folder under src/, or a file of src/shared/. */
function roomOf(path: string): string {
  if (path.startsWith("client/files/")) return "client/files";
  const [top = "", first = "", second = ""] = path.split("/");
  if (top !== "src") return top;
  return (first === "shared" ? second : first).replace(/\.ts$/, "");
}

/** What each room may know. Calls run inward, and nothing inside knows what is outside. */
const arrows: Readonly<Record<string, string>> = {
  main: "cli",
  cli: "config process log version json-text text system-errors auth storage domain client client/files",
  config: "domain storage",
  process:
    "limits promises clocks config log metrics version system-errors auth http storage domain",
  metrics: "storage",
  http: "limits promises log metrics json-text auth domain",
  console: "auth client domain text client/files",
  "client/files": "client domain json-text text",
  domain: "promises text",
  "system-errors": "domain",
  auth: "limits promises clocks bounded-map domain",
  storage: "limits promises system-errors domain",
  limits: "promises domain",
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
    findAll(read(path), /(?:\bfrom |^import |\bimport\()"([^"\n]+)"/gm).map(([name = ""]) => [path, name]),
  );
  expect(imports.filter(([path = "", name = ""]) => isWrong(path, name))).toEqual([]);
});

test("tests and proofs share what is in testing/, and nothing else", () => {
  /** What each folder may import from, besides the sources. */
  const shared = { testing: ["testing"], proofs: ["testing", "proofs"], test: ["testing", "test"] };
  for (const [folder, allowed] of Object.entries(shared)) {
    const files = listFiles(`${folder}/**/*.ts`);
    const imports = files.flatMap((path) =>
      findAll(read(path), /from "(\.[^"]+)"/g).map(([name = ""]) => join(dirname(path), name)),
    );
    const forbidden = ["test", "testing", "proofs"].filter((each) => !allowed.includes(each));
    const wrong = imports.filter((path) => forbidden.includes(path.split("/")[0] ?? ""));
    expect({ folder, wrong }).toEqual({ folder, wrong: [] });
  }
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

  test("name limits that the files beside them declare", () => {
    const [, limits = ""] = read("ARCHITECTURE.md").split("### Limits");
    const rows = findAll(limits, /^\| .+? \| (`[\w, `]+`) \| (`[\w./, `-]+`) \|$/gm);
    const namesIn = (quoted = "") => findAll(quoted, /`([^`]+)`/g).flat();
    const wrong = rows.filter(([constants, files]) => {
      const folder = dirname(namesIn(files)[0] ?? "");
      const code = namesIn(files).map((file) =>
        read(`src/${existsSync(join(root, "src", file)) ? file : join(folder, file)}`),
      );
      return namesIn(constants).some(
        (name) => !code.some((text) => new RegExp(`const ${name} = |\\b${name}: \\d`).test(text)),
      );
    });
    expect(wrong).toEqual([]);
    expect(rows.length).toBeGreaterThan(20);
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
