/** Servers from the system's packages, on loopback, for proofs that need the real thing. */
import { chmodSync, chownSync, closeSync, openSync, readdirSync, statSync } from "node:fs";
import type { Subprocess } from "bun";
import { makeTemporaryFolder } from "../temporary-folder.ts";

const programsParent = "/usr/lib/postgresql";

export const serverEnvironment: Record<string, string> = {
  PATH: process.env.PATH ?? "",
  LC_ALL: "C.UTF-8",
  // Without it, etcd refuses to run there.
  ...(process.arch === "arm64" && { ETCD_UNSUPPORTED_ARCH: "arm64" }),
};

/** The folder of the newest PostgreSQL that is installed. */
export function findPrograms(): string | undefined {
  try {
    const versions = readdirSync(programsParent)
      .map(Number)
      .toSorted((a, b) => b - a);
    return versions.length > 0 ? `${programsParent}/${versions[0]}/bin` : undefined;
  } catch {
    return undefined;
  }
}

export function versionOf(command: readonly string[]): string {
  const { stdout } = Bun.spawnSync([...command], { env: serverEnvironment });
  const lines = stdout.toString().split("\n");
  return lines.find((line) => /\d\.\d/.test(line)) ?? "";
}

/**
 * Not as root, which PostgreSQL and PgBouncer refuse, and in a group of its own, so that Ctrl+C
 * does not reach it before those who use it.
 */
export function spawnServer(command: readonly string[], log: string): Subprocess {
  const user = ["--reuid=postgres", "--regid=postgres", "--init-groups"];
  const asUser = process.getuid?.() === 0 ? ["setpriv", ...user] : [];
  const output = openSync(log, "a");
  const child = Bun.spawn([...asUser, ...command], {
    cwd: "/",
    env: serverEnvironment,
    stdin: "ignore",
    stdout: output,
    stderr: output,
    detached: true,
  });
  closeSync(output);
  return child;
}

/** Open to the user that the servers run as. */
export function makeServerFolder(): string {
  const { path } = makeTemporaryFolder();
  if (process.getuid?.() === 0) {
    const ids = Bun.spawnSync(["id", "-u", "postgres"]).stdout.toString();
    chownSync(path, Number(ids), statSync(path).gid);
  }
  chmodSync(path, 0o755);
  return path;
}
