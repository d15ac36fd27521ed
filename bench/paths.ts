/** Where the programs are that the benchmark starts, and the versions of the installed ones. */
import { join } from "node:path";

export const benchDirectory = import.meta.dir;
export const rootDirectory = join(benchDirectory, "..");
export const serversDirectory = join(benchDirectory, "contenders", "servers");
/** The benchmark runs on the runtime that Plant Store pins. */
export const bunPath = process.execPath;

export async function readVersionOf(packageDirectory: string): Promise<string> {
  const file = Bun.file(join(packageDirectory, "package.json"));
  return ((await file.json()) as { version: string }).version;
}

export function readPeerVersion(name: string): Promise<string> {
  return readVersionOf(join(benchDirectory, "node_modules", name));
}
