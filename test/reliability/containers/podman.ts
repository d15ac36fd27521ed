/** Podman with storage and networks of its own, so that it neither sees nor touches the user's. */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Finished, readOutput } from "../../end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";

/** Its healthchecks are timers of systemd, so it complains where that does not run. */
const complaint = /^.*(?:unable to get systemd connection|failed to connect to syslog).*\n/gm;

export class Podman {
  /** For everything that is built here. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly #isKept: boolean;

  private constructor(kept: string | undefined) {
    this.#isKept = kept !== undefined;
    this.folder = kept ?? makeTemporaryFolder().path;
    this.environment = {
      ...process.env,
      CONTAINERS_CONF: join(this.folder, "containers.conf"),
      CONTAINERS_STORAGE_CONF: join(this.folder, "storage.conf"),
      // OCI's own format has no health checks.
      BUILDAH_FORMAT: "docker",
    };
  }

  /** What has to be installed; undefined if nothing is missing. */
  static missing(): string | undefined {
    const tools = ["podman", "runc", "podman-compose", "debootstrap", "apt-get", "node", "npm"];
    const missing = tools.filter((tool) => Bun.which(tool) === null);
    const helpers = ["netavark", "aardvark-dns"];
    missing.push(...helpers.filter((name) => !existsSync(join("/usr/lib/podman", name))));
    if (missing.length > 0) return `not installed: ${missing.join(", ")}`;
    return process.getuid?.() === 0 ? undefined : "debootstrap needs root";
  }

  /** What is built stays in the given folder, for the next run. */
  static async configure(kept: string | undefined): Promise<Podman> {
    const podman = new Podman(kept);
    const { folder } = podman;
    await Bun.write(
      join(folder, "containers.conf"),
      `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "${folder}/run/libpod"
[network]
network_backend = "netavark"
network_config_dir = "${folder}/networks"
`,
    );
    await Bun.write(
      join(folder, "storage.conf"),
      `[storage]
driver = "overlay"
graphroot = "${folder}/storage"
runroot = "${folder}/run"
`,
    );
    return podman;
  }

  /** Runs a command to its end, whatever its exit code is. */
  async try(command: readonly string[], input?: ReadableStream): Promise<Finished> {
    const child = Bun.spawn(command as string[], {
      env: this.environment,
      stdin: input ?? "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const { out, errors, exitCode } = await readOutput(child);
    return { out: out.trim(), errors: errors.replace(complaint, "").trim(), exitCode };
  }

  /** `podman …`, which must succeed. Returns what it prints. */
  async run(...args: readonly string[]): Promise<string> {
    const { out, errors, exitCode } = await this.try(["podman", ...args]);
    if (exitCode !== 0) throw new Error(`podman ${args[0]}: ${exitCode}\n${out}\n${errors}`);
    return out;
  }

  inspect(container: string, format: string): Promise<string> {
    return this.run("inspect", container, "--format", format);
  }

  /** Makes an image of what `tar` packs. */
  async import(name: string, tarArgs: readonly string[], ...changes: string[]): Promise<void> {
    const tar = Bun.spawn(["tar", "--create", "--anchored", ...tarArgs], { stdout: "pipe" });
    const options = changes.flatMap((change) => ["--change", change]);
    const command = ["podman", "import", "--quiet", ...options, "-", name];
    const { exitCode, errors } = await this.try(command, tar.stdout);
    if ((await tar.exited) !== 0 || exitCode !== 0) throw new Error(`${name}: ${errors}`);
  }

  /** Removes containers, volumes and networks; images, too, unless they are to be kept. */
  async clear(): Promise<void> {
    await this.run("rm", "--all", "--force", "--time", "0", "--volumes");
    await this.run("volume", "prune", "--force");
    await this.run("network", "prune", "--force");
    // It mounts a folder of its storage on itself.
    await this.try(["umount", join(this.folder, "storage/overlay")]);
    if (!this.#isKept) rmSync(this.folder, { recursive: true });
  }
}
