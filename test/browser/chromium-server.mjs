/**
 * Finds and starts Chromium under Node, which owns its pipes, and prints where to reach it. It ends
 * with the process that started it. Exit code 3: no Chromium works here; the output says why.
 */
import { accessSync, constants, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium } from "playwright-core";

const noChromium = 3;
/** A browser that takes longer to show an almost empty page counts as missing. */
const startMs = 60_000;
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
  writeFontSettings(join(folder, "fonts"));
  // Its own arguments switch the browser's checks off that the tests are about: those are left out.
  const own = packed.args.filter((each) => !/web-security|insecure-content|headless/.test(each));
  return { path, folder, argumentLists: [["--no-zygote"], own] };
}

/** The package's own settings look for fonts in /tmp/fonts. Without a font, Chromium crashes. */
function writeFontSettings(folder) {
  const text = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${folder}</dir>
  <cachedir>${folder}/cache</cachedir>
</fontconfig>
`;
  writeFileSync(join(folder, "fonts.conf"), text);
}

/** Throws unless it shows a page in time. Without fonts, a button is enough to crash it. */
async function startChromium(executablePath, args) {
  const server = await chromium.launchServer({
    executablePath,
    // Drawing by an emulated graphics card takes twice the time.
    args: ["--disable-gpu", ...args],
    timeout: startMs,
  });
  try {
    const browser = await chromium.connect(server.wsEndpoint());
    const page = await browser.newPage();
    await page.goto("data:text/html,<button>text", { timeout: startMs });
    await page.screenshot({ timeout: startMs });
    await browser.close();
    return server;
  } catch (error) {
    await server.kill();
    throw error;
  }
}

function fail(reason) {
  process.stderr.write(`${reason}\n`);
  process.exit(noChromium);
}

const found = await findChromium();
if (!found) fail("no Chromium is installed");
let failure;
for (const args of found.argumentLists) {
  try {
    const server = await startChromium(found.path, args);
    process.stdout.write(`${server.wsEndpoint()}\n`);
    process.stdin.resume().on("end", () => server.close());
    failure = undefined;
    break;
  } catch (error) {
    failure = error;
  }
}
if (failure) {
  // It may have been unpacked in part only; the next run begins anew.
  if (found.folder) rmSync(found.folder, { recursive: true, force: true });
  // Playwright's message goes on with a log, of which only the browser's own lines matter.
  const [reason, ...log] = failure.message.split("\n");
  const own = log.filter((line) => line.includes("[err]"));
  fail([`Chromium (${found.path}) can't be used: ${reason}`, ...own].join("\n  "));
}
