/**
 * Leads those calls of `node:fs` through the interposer that a storage relies on: the runtime sends
 * them to the kernel without the C library, where they would not be seen.
 */
import { ptr } from "bun:ffi";
import { constants } from "node:os";

/** Not imported: what is imported once stays as it was for all that import it later. */
const fs: typeof import("node:fs") = require("node:fs");

export interface SeenCalls {
  open_file(path: ReturnType<typeof ptr>, flags: number, mode: number): number;
  sync_file(file: number): number;
  close_file(file: number): number;
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_APPEND } = fs.constants;
const closeOnExec = 0o2000000;
const flagsOf = new Map<unknown, number>([
  ["r", O_RDONLY],
  ["a", O_WRONLY | O_CREAT | O_APPEND],
]);
const defaultMode = 0o666;

/** Before any other module asks for them. Other ways to open a file stay as they are. */
export function leadThrough(seen: SeenCalls): void {
  const { openSync } = fs;
  fs.openSync = (path, flags = "r", mode) => {
    const known = flagsOf.get(flags);
    if (known === undefined || typeof path !== "string") return openSync(path, flags, mode);
    const name = ptr(Buffer.from(`${path}\0`));
    return check("open", seen.open_file(name, known | closeOnExec, Number(mode ?? defaultMode)));
  };
  fs.fsyncSync = (file) => {
    check("fsync", seen.sync_file(file));
  };
  fs.closeSync = (file) => {
    check("close", seen.close_file(file));
  };
}

function check(syscall: string, result: number): number {
  if (result >= 0) return result;
  const [code = ""] = Object.entries(constants.errno).find(([, errno]) => errno === -result) ?? [];
  throw Object.assign(new Error(`${code}: ${syscall}`), { code, errno: result, syscall });
}
