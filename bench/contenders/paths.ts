/** Where the programs lie that the benchmark starts. */
import { join } from "node:path";

export const benchDirectory = join(import.meta.dir, "..");
export const rootDirectory = join(benchDirectory, "..");
/** The benchmark runs on the same runtime as Plant Store, so this is the pinned one. */
export const bunPath = process.execPath;
export const serversDirectory = join(import.meta.dir, "servers");

/** Fastify and json-server run where their users run them. */
export function findNode(): string | undefined {
  return Bun.which("node") ?? undefined;
}

export async function readPackageVersion(name: string): Promise<string> {
  const file = Bun.file(join(benchDirectory, "node_modules", name, "package.json"));
  return ((await file.json()) as { version: string }).version;
}
