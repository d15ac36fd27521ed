/**
 * Loaded by a process before its program: puts interposer.c between the two and the C library. What
 * it has to know stands in the environment, where interposed-io.ts puts it.
 */
import { cc, ptr } from "bun:ffi";
import { fileURLToPath } from "node:url";
import { leadThrough } from "./node-calls.ts";

const { INTERPOSED_FOLDER = "", INTERPOSED_EQUIPMENT = "" } = process.env;
const library = cc({
  source: fileURLToPath(import.meta.resolve("./interposer.c")),
  // The compiler insists on a C library to link with, though it finds all in the one that is
  // loaded.
  flags: `-L${INTERPOSED_EQUIPMENT}`,
  symbols: {
    interpose: { args: ["ptr", "ptr", "ptr"], returns: "int" },
    open_file: { args: ["ptr", "int", "int"], returns: "int" },
    sync_file: { args: ["int"], returns: "int" },
    close_file: { args: ["int"], returns: "int" },
  },
});
// Its code must stay as long as the process: it is called from all threads.
Reflect.set(globalThis, Symbol.for("interposer"), library);

const toText = (value: string) => ptr(Buffer.from(`${value}\0`));
const replaced = library.symbols.interpose(
  toText(INTERPOSED_FOLDER),
  toText(`${INTERPOSED_EQUIPMENT}/calls.log`),
  toText(`${INTERPOSED_EQUIPMENT}/control`),
);
if (replaced === 0) throw new Error("The calls of this process cannot be seen.");
leadThrough(library.symbols);
