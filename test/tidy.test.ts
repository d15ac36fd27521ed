/** The house rules: which way imports point, how files begin, and what documents may say. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { renderHeadline, renderReport } from "../bench/report.ts";
import manifest from "../package.json" with { type: "json" };
import lock from "../package-lock.json" with { type: "json" };

const root = join(import.meta.dir, "..");

function listFiles(pattern: string): string[] {
  const paths = [...new Bun.Glob(pattern).scanSync(root)];
  return paths.filter((path) => !path.includes("node_modules"));
}

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** The first group of each match. */
function findAll(text: string, pattern: RegExp): string[] {
  return Array.from(text.matchAll(pattern), ([, group = ""]) => group);
}

/** What is shipped. */
const sources = listFiles("{src,client,console}/**/*.{ts,tsx}").filter(
  (path) => !/\.test\.tsx?$/.test(path),
);

describe("imports", () => {
  interface Import {
    readonly from: string;
    /** A path below the root, or the name of a package or a runtime module. */
    readonly to: string;
  }

  function findImports(paths: readonly string[]): Import[] {
    return paths.flatMap((from) =>
      findAll(read(from), /(?:\bfrom |^import |\bimport\(\s*)"([^"\n]+)"/gm).map((name) => ({
        from,
        to: name.startsWith(".") ? join(dirname(from), name) : name,
      })),
    );
  }

  function isOurs(path: string): boolean {
    return /^(?:src|client|console|testing|test|proofs|deploy|scripts|bench)\//.test(path);
  }

  /** A room is a folder of its own, a folder under src/, or a file of src/shared/. */
  function roomOf(path: string): string {
    if (path.startsWith("client/files/")) return "client/files";
    const [top = "", first = "", second = ""] = path.split("/");
    if (top !== "src") return top;
    return (first === "shared" ? second : first).replace(/\.ts$/, "");
  }

  /** What each room may know. Calls run inward, and nothing inside knows what is outside. */
  const roomsInside: Readonly<Record<string, readonly string[]>> = {
    main: ["cli"],
    cli: [
      "config",
      "process",
      "log",
      "version",
      "json-text",
      "text",
      "system-errors",
      "auth",
      "storage",
      "domain",
      "client",
      "client/files",
    ],
    config: ["domain", "storage"],
    process: [
      "limits",
      "promises",
      "clocks",
      "config",
      "log",
      "metrics",
      "version",
      "system-errors",
      "auth",
      "http",
      "storage",
      "domain",
    ],
    metrics: ["storage"],
    http: ["limits", "promises", "log", "metrics", "json-text", "auth", "domain"],
    console: ["auth", "client", "domain", "text", "client/files"],
    "client/files": ["client", "domain", "json-text", "text"],
    domain: ["promises", "text"],
    "system-errors": ["domain"],
    auth: ["limits", "promises", "clocks", "bounded-map", "domain"],
    storage: ["limits", "promises", "system-errors", "domain"],
    limits: ["promises", "domain"],
  };

  test("of sources point inward only", () => {
    const outward = findImports(sources)
      .filter(({ to }) => isOurs(to))
      .filter(({ from, to }) => {
        const room = roomOf(from);
        return roomOf(to) !== room && !roomsInside[room]?.includes(roomOf(to));
      });

    expect(outward).toEqual([]);
  });

  const packagesByRoom: readonly { room: string; packages: readonly string[] }[] = [
    { room: "domain", packages: ["valibot"] },
    { room: "auth", packages: ["jose"] },
    { room: "client", packages: [] },
    { room: "console", packages: ["preact", "preact/hooks", "@preact/signals"] },
  ];

  test.each(packagesByRoom)(
    "of $room name no packages or runtime modules but its own",
    ({ room, packages }) => {
      const imports = findImports(sources.filter((path) => roomOf(path) === room));
      expect(imports.length).toBeGreaterThan(0);

      const others = imports.filter(({ to }) => !isOurs(to) && !packages.includes(to));
      expect(others).toEqual([]);
    },
  );

  test("of tests name no proofs, those of proofs no tests, and those of testing/ neither", () => {
    const forbidden = [
      { from: "testing/", to: "test/" },
      { from: "testing/", to: "proofs/" },
      { from: "test/", to: "proofs/" },
      { from: "proofs/", to: "test/" },
    ];

    const wrong = findImports(listFiles("{test,testing,proofs}/**/*.{ts,tsx}")).filter((each) =>
      forbidden.some(({ from, to }) => each.from.startsWith(from) && each.to.startsWith(to)),
    );
    expect(wrong).toEqual([]);
  });

  test("name proofs only in proofs/", () => {
    const others = listFiles(
      "{src,client,console,test,testing,deploy,scripts,bench}/**/*.{ts,tsx}",
    );

    expect(findImports(others).filter(({ to }) => to.startsWith("proofs/"))).toEqual([]);
  });
});

test("files open with a sentence about their job", () => {
  const opening = /^(?:#!.*\n)?(?:\/\/\/.*\n)?\/\*\*[\s*]+[A-Z`][\s\S]*?[.:]\s*\*\//;
  const code = listFiles("{src,client,console,test,testing,proofs,deploy}/**/*.{ts,tsx}");

  expect(code.filter((path) => !opening.test(read(path)))).toEqual([]);
});

describe.each(["*.md", "{docs,bench,deploy}/**/*.md"].flatMap(listFiles))("%s", (path) => {
  /** The anchors of a page's headings, as GitHub makes them. */
  function anchorsOf(page: string): string[] {
    return findAll(read(page), /^#+ (.+)$/gm).map((heading) =>
      heading
        .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .replaceAll(" ", "-"),
    );
  }

  test("links only to files and headings that exist", () => {
    const links = findAll(read(path), /\]\((?!https?:|mailto:)([^)]*)\)/g);

    const broken = links.filter((link) => {
      const [file = "", anchor = ""] = link.split("#");
      const target = file === "" ? path : join(dirname(path), file);
      if (!existsSync(join(root, target))) return true;
      return anchor !== "" && !anchorsOf(target).includes(anchor);
    });
    expect(broken).toEqual([]);
  });

  test("names npm scripts that exist, or commands of npm", () => {
    const known = [...Object.keys(manifest.scripts), "audit", "ci", "install", "outdated", "pack"];

    const named = findAll(read(path), /(?:^|`|&& )npm (?:run (?:-s )?)?([a-z][\w:-]*)/gm);
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
  });
});

describe("the benchmark's figures", () => {
  const results = JSON.parse(read("bench/results.json"));
  const measuredVersion: string = results.contenders[0].version;

  test("are those in docs/benchmarks.md", () => {
    expect(read("docs/benchmarks.md")).toContain(renderReport(results));
  });

  test("are those in the README", () => {
    const headline = renderHeadline(results) ?? "";

    expect(headline).not.toBe("");
    expect(read("README.md").replaceAll(/\s+/g, " ")).toContain(headline);
  });

  test.each(["docs/scaling.md", "docs/operating.md"])("stand in %s with their version", (path) => {
    expect(read(path)).toContain(measuredVersion);
  });

  test("are of this minor version", () => {
    const [major, minor] = manifest.version.split(".");

    expect(measuredVersion).toStartWith(`${major}.${minor}.`);
  });
});

describe("ARCHITECTURE.md", () => {
  const text = read("ARCHITECTURE.md");

  test("maps every folder of the source", () => {
    const folders = new Set(sources.map((path) => basename(dirname(path))));

    expect([...folders].filter((name) => !text.includes(`${name}/`))).toEqual([]);
  });

  test("names files that exist", () => {
    const files = listFiles("{src,client,console,test,testing,proofs,scripts}/**/*.ts");
    const names = files.map((path) => basename(path));

    const named = findAll(text, /(?<![\w*-])([\w.-]+\.ts)\b/g);
    expect(named.filter((name) => !names.includes(name))).toEqual([]);
  });

  test("names limits that the files beside them declare", () => {
    const [, limits = ""] = text.split("### Limits");
    const rows = [...limits.matchAll(/^\| .+? \| (`[\w, `]+`) \| (`[\w./, `-]+`) \|$/gm)];
    expect(rows.length).toBeGreaterThan(20);

    for (const [, constants = "", files = ""] of rows) {
      const names = findAll(files, /`([^`]+)`/g);
      // Only the first file of a row has its folder.
      const folder = dirname(names[0] ?? "");
      const code = names.map((name) =>
        read(`src/${existsSync(join(root, "src", name)) ? name : join(folder, name)}`),
      );
      for (const constant of findAll(constants, /`([^`]+)`/g)) {
        const declaration = new RegExp(`const ${constant} = |\\b${constant}: \\d`);
        const isDeclared = code.some((each) => declaration.test(each));
        expect({ constant, files, isDeclared }).toEqual({ constant, files, isDeclared: true });
      }
    }
  });
});

describe("package.json", () => {
  test("pins every dependency exactly", () => {
    const ranges = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies });

    const loose = ranges.filter(([, range]) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(range));
    expect(loose).toEqual([]);
  });

  test("says of every install script whether npm may run it", () => {
    const packages = lock.packages as Record<string, { hasInstallScript?: boolean }>;
    const withScripts = Object.keys(packages).filter((path) => packages[path]?.hasInstallScript);
    expect(withScripts.length).toBeGreaterThan(0);

    for (const path of withScripts) {
      const name = path.replace(/^.*node_modules\//, "");
      expect(Object.keys(manifest.allowScripts)).toContain(name);
    }
  });

  test("has no version of npm report the installation to others", () => {
    expect(manifest.allowScripts["@scarf/scarf"]).toBe(false);
    // npm 10 runs the script, which looks here first.
    expect(manifest.scarfSettings.enabled).toBe(false);
  });
});
