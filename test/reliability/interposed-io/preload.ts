/**
 * Preloaded into a process: puts interposer.c between the program and the C library. Its settings
 * are in the environment, set by interposed-io.ts.
 */
import { cc, ptr } from "bun:ffi";
import { fileURLToPath } from "node:url";
import { leadThrough } from "./node-calls.ts";

const { INTERPOSED_FOLDER = "", INTERPOSED_EQUIPMENT = "" } = process.env;
const library = cc({
  source: fileURLToPath(import.meta.resolve("./interposer.c")),
  // The compiler insists on a C library to link with, although the loaded one has all symbols.
  flags: `-L${INTERPOSED_EQUIPMENT}`,
  symbols: {
    interpose: { args: ["ptr", "ptr", "ptr"], returns: "int" },
    open_file: { args: ["ptr", "int", "int"], returns: "int" },
    sync_file: { args: ["int"], returns: "int" },
    close_file: { args: ["int"], returns: "int" },
  },
});
// The code must stay loaded: it is called from all threads.
Reflect.set(globalThis, Symbol.for("interposer"), library);

const toText = (value: string) => ptr(Buffer.from(`${value}\0`));
const replaced = library.symbols.interpose(
  toText(INTERPOSED_FOLDER),
  toText(`${INTERPOSED_EQUIPMENT}/calls.log`),
  toText(`${INTERPOSED_EQUIPMENT}/control`),
);
if (replaced === 0) throw new Error("The calls of this process cannot be intercepted.");
leadThrough(library.symbols);
