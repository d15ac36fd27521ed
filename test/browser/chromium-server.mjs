/**
 * Finds and starts Chromium under Node, which owns its pipes, and prints where to reach it. It ends
 * with the process that started it. Exit code 3: there is no Chromium for this kind of machine.
 */
import { accessSync, constants, mkdirSync, readFileSync, rmSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

const noChromium = 3;
const installedNames = [
  "chromium",
  "chromium-browser",
  "chromium-headless-shell",
  "google-chrome",
  "google-chrome-stable",
];

/** The one that a person names, else the one that npm brought, else an installed one. */
async function findChromium() {
  const { PLANTSTORE_TEST_CHROMIUM: named, PATH = "" } = process.env;
  if (named) return { path: named, argumentLists: [[]] };
  if (process.arch === "x64") return unpackChromium();
  const candidates = PATH.split(delimiter).flatMap((folder) =>
    installedNames.map((name) => join(folder, name)),
  );
  const path = candidates.find(isExecutable);
  return path && { path, argumentLists: [[]] };
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** From the npm package, which holds the build for x64, with the libraries that bare machines lack. */
async function unpackChromium() {
  const manifest = readFileSync(join(import.meta.dirname, "../../package.json"), "utf8");
  const version = JSON.parse(manifest).devDependencies["@sparticuz/chromium"];
  const folder = join(import.meta.dirname, `../.output/chromium-${version}`);
  mkdirSync(folder, { recursive: true });
  const { TMPDIR } = process.env;
  process.env.TMPDIR = folder;
  // The package unpacks its libraries only where it believes to be in the service that it is made for.
  process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs20.x";
  const { default: packed } = await import("@sparticuz/chromium");
  const path = await packed.executablePath();
  delete process.env.AWS_EXECUTION_ENV;
  if (TMPDIR === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = TMPDIR;
  // Its own arguments switch the browser's checks off that the tests are about: those are left out.
  const own = packed.args.filter((each) => !/web-security|insecure-content|headless/.test(each));
  return { path, folder, argumentLists: [["--no-zygote"], own] };
}

const found = await findChromium();
if (!found) process.exit(noChromium);
let failure;
for (const args of found.argumentLists) {
  const launched = chromium.launchServer({ executablePath: found.path, args, timeout: 20_000 });
  const server = await launched.catch((error) => {
    failure = error;
  });
  if (!server) continue;
  process.stdout.write(`${server.wsEndpoint()}\n`);
  process.stdin.resume().on("end", () => server.close());
  failure = undefined;
  break;
}
if (failure) {
  // It may have been unpacked in part only; the next run begins anew.
  if (found.folder) rmSync(found.folder, { recursive: true, force: true });
  throw failure;
}
