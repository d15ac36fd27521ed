/** Servers from the system's packages, on loopback, for proofs that need the real thing. */
import { chmodSync, chownSync, closeSync, openSync, rmSync, statSync } from "node:fs";
import type { Subprocess } from "bun";
import { makeTemporaryFolder } from "./temporary-folder.ts";

const environment: Record<string, string> = {
  PATH: process.env.PATH ?? "",
  LC_ALL: "C.UTF-8",
  // Without it, etcd refuses to run there.
  ...(process.arch === "arm64" && { ETCD_UNSUPPORTED_ARCH: "arm64" }),
};

/** In the folder of the newest PostgreSQL, on the path, and where Debian has servers. */
export function findProgram(name: string): string | null {
  const scan = { cwd: "/", onlyFiles: false, absolute: true };
  const folders = [...new Bun.Glob("usr/lib/postgresql/*/bin").scanSync(scan)].sort().reverse();
  return Bun.which(name, { PATH: [...folders, process.env.PATH, "/usr/sbin"].join(":") });
}

/** The path of a program. Ends a proof, as skipped, where it is missing. */
export function needProgram(name: string): string {
  const path = findProgram(name);
  if (path !== null) return path;
  process.stdout.write(`skipped, because it is not installed: ${name}\n`);
  process.exit(0);
}

/**
 * Not as root, which PostgreSQL and PgBouncer refuse, and in its own process group, so that Ctrl+C
 * doesn't stop it before its clients. It ends with this process, even one that tells no listeners
 * that it exits, as `bun test` does.
 */
export function spawnServer(command: readonly string[], log: string): Subprocess {
  const asPostgres = ["--reuid=postgres", "--regid=postgres", "--init-groups"];
  const options = process.getuid?.() === 0 ? asPostgres : [];
  const wrapper = process.platform === "linux" ? ["setpriv", "--pdeathsig=KILL", ...options] : [];
  const output = openSync(log, "a");
  const child = Bun.spawn([...wrapper, ...command], {
    cwd: "/",
    env: environment,
    stdin: "ignore",
    stdout: output,
    stderr: output,
    detached: true,
  });
  closeSync(output);
  // Before its folder is removed.
  process.prependListener("exit", () => child.kill("SIGKILL"));
  return child;
}

/** Open to the user that the servers run as. It goes away with this process. */
export function makeServerFolder(): string {
  const { path } = makeTemporaryFolder();
  if (process.getuid?.() === 0) {
    const ids = Bun.spawnSync(["id", "-u", "postgres"]).stdout.toString();
    chownSync(path, Number(ids), statSync(path).gid);
  }
  chmodSync(path, 0o755);
  // A server that was killed may still write for a moment.
  process.on("exit", () => rmSync(path, { recursive: true, force: true, maxRetries: 10 }));
  return path;
}
