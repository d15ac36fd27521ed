/**
 * The house rules: which way imports point, and what must not be left lying about.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { renderHeadline, renderReport } from "../bench/report.ts";
import scalar from "../console/vendor/scalar.json" with { type: "json" };
import manifest from "../package.json" with { type: "json" };

const root = join(import.meta.dir, "..");

function listFiles(pattern: string): string[] {
  return [...new Bun.Glob(pattern).scanSync({ cwd: root, dot: false })]
    .filter((path) => !path.includes("node_modules"))
    .toSorted();
}

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

const sources = listFiles("{src,client,console}/**/*.{ts,tsx}").filter(
  (path) => !/\.test\.tsx?$/.test(path),
);
const allCode = listFiles("{src,client,console,test,proofs,deploy}/**/*.{ts,tsx}");

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

function importsOf(path: string): string[] {
  const text = read(path);
  const found = text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g);
  return [...found].map(([, name = ""]) => name);
}

describe("imports", () => {
  test("point inward only", () => {
    const wrong: string[] = [];
    for (const path of sources) {
      const room = roomOf(path);
      for (const name of importsOf(path)) {
        if (!name.startsWith(".")) {
          if (packages[room]?.test(name) === false) wrong.push(`${path} imports ${name}`);
          continue;
        }
        const target = relative(root, join(root, dirname(path), name));
        if (!/^(?:src|client|console)\//.test(target)) continue;
        const other = roomOf(target);
        const isKnown = other === room || arrows[room]?.split(" ").includes(other);
        if (!isKnown) wrong.push(`${path} imports ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test.each(listFiles("src/storage/*/engine.ts").map((path) => basename(dirname(path))))(
    "of the %s engine come from the one place that chooses engines",
    (engine) => {
      const users = sources.filter(
        (path) => !path.startsWith(`src/storage/${engine}/`) && read(path).includes(`/${engine}/`),
      );
      expect(users).toEqual(["src/storage/open.ts"]);
    },
  );

  test("of the start reach no command: each is loaded when it is called", () => {
    const loaded = new Set<string>();
    const visit = (path: string): void => {
      if (loaded.has(path)) return;
      loaded.add(path);
      for (const [, name = ""] of read(path).matchAll(
        /^(?:import(?! type)|}).* from "(\..+\.ts)"/gm,
      )) {
        visit(join(dirname(path), name));
      }
    };
    visit("src/main.ts");
    expect([...loaded]).toContain("src/cli/catalog.ts");
    expect(
      [...loaded].filter((path) =>
        /-commands?\.ts$|^src\/(?!main|config|cli|domain|storage\/(?:storage|failures))/.test(path),
      ),
    ).toEqual([]);
  });
});

describe("files", () => {
  test("have comments of at most 100 columns", () => {
    const isWide = (line: string) => /^\s*(?:\/\*\*|\*|\/\/) /.test(line) && line.length > 100;
    const wide = allCode.filter((path) => read(path).split("\n").some(isWide));
    expect(wide).toEqual([]);
  });

  test("open with a sentence about their job", () => {
    const opening = /^(?:#!.*\n)?(?:\/\/\/.*\n)?\/\*\*[\s*]+[A-Z`][\s\S]*?[.:]\s*\*\//;
    expect(allCode.filter((path) => !opening.test(read(path)))).toEqual([]);
  });

  test("hold no leftovers", () => {
    const leftovers = /\b(?:TO[D]O|FIX[M]E|X[X]X|HA[C]K)\b|\.only\(|debu[g]ger;|console\.lo[g]/;
    expect(allCode.filter((path) => leftovers.test(read(path)))).toEqual([]);
  });
});

describe("documents", () => {
  const documents = [
    ...listFiles("*.md"),
    ...listFiles("docs/**/*.md"),
    ...listFiles("{bench,deploy}/**/*.md"),
  ];

  /** The anchors of a page's headings, as GitHub makes them. */
  function anchorsOf(path: string): string[] {
    const headings = [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
    return headings.map((heading) =>
      heading
        .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-"),
    );
  }

  test("link only to what is there", () => {
    const broken = documents.flatMap((path) =>
      [...read(path).matchAll(/\]\((?!https?:|mailto:)([^)#]*)(?:#([^)]+))?\)/g)]
        .map(([, target, anchor]) => ({
          target: target ? join(dirname(path), target) : path,
          anchor,
        }))
        .filter(
          ({ target, anchor }) =>
            !existsSync(join(root, target)) ||
            (anchor !== undefined && !anchorsOf(target).includes(anchor)),
        )
        .map(({ target, anchor = "" }) => `${path} → ${target}#${anchor}`),
    );
    expect(broken).toEqual([]);
  });

  test("name only npm scripts that there are", () => {
    const builtIn = ["ci", "install", "pack"];
    const unknown = documents.flatMap((path) =>
      [...read(path).matchAll(/(?:^|`|&& )npm (?:run (?:-s )?)?([a-z][\w:-]*)/gm)]
        .map(([, script = ""]) => script)
        .filter((script) => !builtIn.includes(script) && !(script in manifest.scripts))
        .map((script) => `${path}: npm ${script}`),
    );
    expect(unknown).toEqual([]);
  });

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
    const files = new Set(
      listFiles("{src,client,console,test,proofs,scripts}/**/*.ts").map((path) => basename(path)),
    );
    const named = [...text.matchAll(/(?<![\w*-])[\w.-]+\.ts\b/g)].map(([name]) => name);
    expect(named.filter((name) => !files.has(name))).toEqual([]);
  });

  test("give every limit as the code has it", () => {
    const units: Record<string, number> = { s: 1_000, h: 3_600_000, KiB: 2 ** 10, MiB: 2 ** 20 };
    const rows = read("ARCHITECTURE.md").matchAll(
      /^\| .+? \| ([\d, a-zA-Z]+) \| (`[\w, `]+`) \| (`[\w./, `-]+`) \|$/gm,
    );
    const wrong: string[] = [];
    let checked = 0;
    for (const [, values = "", names = "", files = ""] of rows) {
      const listed = (text: string) =>
        [...text.matchAll(/`([^`]+)`/g)].map(([, each = ""]) => each);
      for (const [index, name] of listed(names).entries()) {
        const [, number = "", unit = ""] =
          /^([\d,]+) ?(\w*)$/.exec(values.split(", ")[index] ?? "") ?? [];
        const file = listed(files)[index] ?? listed(files)[0] ?? "";
        const found =
          new RegExp(`\\b${name}(?: =|:) ([\\d_* ]+)[;,]`).exec(read(`src/${file}`))?.[1] ?? "";
        const inCode = found
          .split("*")
          .reduce((product, each) => product * Number(each.replaceAll("_", "")), 1);
        const scale = name.endsWith("Seconds") ? 1 : (units[unit] ?? 1);
        if (Number(number.replaceAll(",", "")) * scale !== inCode) wrong.push(`${name}: ${inCode}`);
        checked++;
      }
    }
    expect(wrong).toEqual([]);
    expect(checked).toBeGreaterThan(30);
  });

  test("have a changelog with what is not released yet", () => {
    expect(read("CHANGELOG.md")).toMatch(/^## .*\bunreleased\b/im);
  });

  test("pin every dependency exactly", () => {
    const ranges = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });
    expect(ranges.filter(([, range]) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(range))).toEqual([]);
  });
});

describe("an installation for production", () => {
  test("npm ci --omit=dev installs Bun and less than 10 MB beside it", () => {
    const lock: { packages: Record<string, { dev?: boolean }> } = JSON.parse(
      read("package-lock.json"),
    );
    const production = Object.keys(lock.packages).filter(
      (path) => /^node_modules\/(?!bun$|@oven\/)/.test(path) && !lock.packages[path]?.dev,
    );
    expect(production).toContain("node_modules/valibot");
    const bytes = production.reduce((sum, path) => sum + sizeOf(join(root, path)), 0);
    expect(bytes).toBeLessThan(10_000_000);
  });

  test("the API reference's renderer is the file that its package has", () => {
    for (const [name, hash] of Object.entries(scalar.sha256)) {
      const bytes = readFileSync(join(root, "console/vendor", name));
      expect([name, new Bun.SHA256().update(bytes).digest("hex")]).toEqual([name, hash]);
    }
  });

  /** 0 for a package of another platform, which isn't installed. */
  function sizeOf(folder: string): number {
    if (!existsSync(folder)) return 0;
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile());
    return files.reduce(
      (sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size,
      0,
    );
  }
});
