/**
 * Preloaded into a process: puts interposer.c between the program and the C library. Its settings
 * are in the environment, set by interposed-io.ts.
 */
import { cc, ptr } from "bun:ffi";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";

const { INTERPOSED_FOLDER = "", INTERPOSED_EQUIPMENT = "" } = process.env;
const library = cc({
  source: fileURLToPath(import.meta.resolve("./interposer.c")),
  // The compiler insists on a C library to link with, although the loaded one has all symbols.
  flags: `-L${INTERPOSED_EQUIPMENT}`,
  symbols: {
    interpose: { args: ["ptr", "ptr", "ptr"], returns: "int" },
    open_file: { args: ["ptr", "int", "int"], returns: "int" },
    sync_file: { args: ["int"], returns: "int" },
  },
});
// The code must stay loaded: it is called from all threads.
Reflect.set(globalThis, Symbol.for("interposer"), library);
const seen = library.symbols;

const toText = (value: string) => ptr(Buffer.from(`${value}\0`));
const replaced = seen.interpose(
  toText(INTERPOSED_FOLDER),
  toText(`${INTERPOSED_EQUIPMENT}/calls.log`),
  toText(`${INTERPOSED_EQUIPMENT}/rule`),
);
if (replaced === 0) throw new Error("The calls of this process cannot be intercepted.");

/** Not imported, because the properties of an imported module cannot be replaced. */
const fs: typeof import("node:fs") = require("node:fs");
const { O_RDONLY, O_RDWR, O_WRONLY, O_CREAT, O_EXCL, O_APPEND, O_TRUNC } = fs.constants;
const closeOnExec = 0o2000000;
const flagsOf: Readonly<Record<string, number>> = {
  r: O_RDONLY,
  "r+": O_RDWR,
  w: O_WRONLY | O_CREAT | O_TRUNC,
  wx: O_WRONLY | O_CREAT | O_EXCL,
  "wx+": O_RDWR | O_CREAT | O_EXCL,
  a: O_WRONLY | O_CREAT | O_APPEND,
};

// The runtime makes the system calls of these without the C library.
fs.openSync = (path, flags = "r", mode = 0o666) => {
  const known = typeof flags === "number" ? flags : flagsOf[flags];
  if (known === undefined) throw new Error(`Flags that preload.ts does not know: ${flags}`);
  return check("open", seen.open_file(toText(`${path}`), known | closeOnExec, Number(mode)));
};
fs.fsyncSync = (file) => {
  check("fsync", seen.sync_file(file));
};

function check(syscall: string, result: number): number {
  if (result >= 0) return result;
  const [code = ""] = Object.entries(constants.errno).find(([, errno]) => errno === -result) ?? [];
  throw Object.assign(new Error(`${code}: ${syscall}`), { code, errno: result, syscall });
}
