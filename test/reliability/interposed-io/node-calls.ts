/**
 * Redirects the calls of `node:fs` that a storage relies on to the interposer: the runtime makes
 * these system calls itself, without the C library.
 */
import { ptr } from "bun:ffi";
import { constants } from "node:os";

/** Not imported, because the properties of an imported module cannot be replaced. */
const fs: typeof import("node:fs") = require("node:fs");

export interface SeenCalls {
  open_file(path: ReturnType<typeof ptr>, flags: number, mode: number): number;
  sync_file(file: number): number;
  close_file(file: number): number;
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_APPEND } = fs.constants;
const closeOnExec = 0o2000000;
const flagsOf = new Map<unknown, number>([
  ["r", O_RDONLY],
  ["wx", O_WRONLY | O_CREAT | O_EXCL],
  ["a", O_WRONLY | O_CREAT | O_APPEND],
]);
const defaultMode = 0o666;

/** Must run before any other module imports them. Other ways to open a file are unchanged. */
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
