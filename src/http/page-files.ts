/**
 * The files of the pages, made when they are first asked for and kept: the console is bundled from
 * its source, the API reference comes from its package. Both are named by a hash of their content.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";

export interface PageFile {
  readonly contentType: string;
  readonly text: string;
  readonly gzipped: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

const sources = join(import.meta.dir, "../console");
const assets = new Map<string, PageFile>();

/** The console's page; its script and style sheet are among the assets from then on. */
export const loadConsole = once(async () => {
  const script = await bundle("console.ts");
  const style = await bundle("console.css");
  return { console: await makePage("console.html", { script, style }) };
});

/** The API reference's page, likewise. */
export const loadReference = once(async () => {
  const renderer = new URL(
    "js/standalone.js",
    import.meta.resolve("@scalar/fastify-api-reference"),
  );
  const library = await addAsset(
    "reference-renderer",
    "js",
    await Bun.file(fileURLToPath(renderer)).text(),
  );
  const script = await bundle("reference.ts");
  const style = await bundle("reference.css");
  return { reference: await makePage("reference.html", { library, script, style }) };
});

/** Also where another process has served the page that names it. */
export async function findAsset(name: string): Promise<PageFile | undefined> {
  await (name.startsWith("reference") ? loadReference() : loadConsole());
  return assets.get(name);
}

/** Bundles a file of the console's folder with all that it imports; answers the asset's address. */
async function bundle(name: string): Promise<string> {
  const built = await Bun.build({
    entrypoints: [join(sources, name)],
    target: "browser",
    minify: true,
  });
  const [output] = built.outputs;
  if (!output) throw new Error(`${name} was bundled into nothing.`);
  const [stem = "", extension] = name.split(".");
  return addAsset(stem, extension === "css" ? "css" : "js", await output.text());
}

async function addAsset(stem: string, extension: "js" | "css", text: string): Promise<string> {
  const type = extension === "js" ? "text/javascript" : "text/css";
  const file = await makeFile(`${type}; charset=utf-8`, text);
  const name = `${stem}-${hash(text)}.${extension}`;
  assets.set(name, file);
  return `assets/${name}`;
}

/** The page with the addresses of its assets, which are relative: it does not know the base path. */
async function makePage(
  name: string,
  addresses: Readonly<Record<string, string>>,
): Promise<PageFile> {
  let text = await Bun.file(join(sources, name)).text();
  for (const [key, address] of Object.entries(addresses)) {
    text = text.replace(`{${key}}`, address);
  }
  return makeFile("text/html; charset=utf-8", text);
}

async function makeFile(contentType: string, text: string): Promise<PageFile> {
  // Not on the event loop: the renderer has megabytes.
  const gzipped = new Uint8Array(await promisify(gzip)(text, { level: 9 }));
  // Weak, because the text and its compressed form share it.
  return { contentType, text, gzipped, etag: `W/"${hash(text)}"` };
}

function hash(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 16);
}

/** Runs it once for all who ask; after a failure, again for the next. */
function once<Result>(make: () => Promise<Result>): () => Promise<Result> {
  let made: Promise<Result> | undefined;
  return () => {
    made ??= make().catch((error) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}
