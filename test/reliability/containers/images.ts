/**
 * The images without a registry: bases from debootstrap, ours from deploy/Containerfile, and
 * Debian's PostgreSQL and Caddy in place of the official ones.
 */
import { existsSync, mkdirSync, readdirSync, realpathSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Podman } from "./podman.ts";

const root = join(import.meta.dir, "../../..");
const certificates = "/etc/ssl/certs/ca-certificates.crt";

export const image = "localhost/plantstore";
const debian = "localhost/plantstore-debian";
const buildBase = "localhost/plantstore-build-base";
const runtimeBase = "localhost/plantstore-runtime-base";

/** The whole of what the executable needs, as in the distroless image that is the default. */
const runtimePackages = ["base-files", "libc6"];

/** Where npm gets packages from on this machine. */
export async function findRegistry(podman: Podman): Promise<string> {
  return (await podman.try(["npm", "config", "get", "registry"])).out;
}

export async function buildBases(podman: Podman): Promise<void> {
  const system = join(podman.folder, "debian");
  if (!existsSync(system)) await bootstrap(podman, system);
  const isBuilt = await podman.try(["podman", "image", "exists", runtimeBase]);
  if (isBuilt.exitCode === 0) return;
  const packed = ["--exclude=./dev/*", "--exclude=*.deb", "-C", system, "."];
  await podman.import(debian, packed);
  const node = Bun.which("node") ?? "";
  const npm = Bun.which("npm") ?? "";
  // Node and npm from this machine, where Debian's are too old; its certificates for its registry.
  const added = [node, realpathSync(node), npm, join(realpathSync(npm), "../.."), certificates];
  const paths = [...new Set(added)].filter((path) => existsSync(path)).map((path) => path.slice(1));
  await podman.import(
    buildBase,
    [...packed, "-C", "/", ...paths],
    `ENV PATH=${dirname(node)}:/usr/bin:/bin`,
    `ENV NODE_EXTRA_CA_CERTS=${certificates}`,
  );
  await podman.import(runtimeBase, ["-C", await unpackRuntime(podman, system), "."]);
}

async function bootstrap(podman: Podman, system: string): Promise<void> {
  const targets = ["--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"];
  const { out } = await podman.try(["apt-get", "indextargets", ...targets]);
  const [mirror = "", suite = ""] = out.split(/\s/);
  const partial = `${system}.partial`;
  rmSync(partial, { recursive: true, force: true });
  const command = ["debootstrap", "--variant=minbase", suite, partial, mirror];
  const { exitCode, out: log } = await podman.try(command);
  if (exitCode !== 0) throw new Error(`debootstrap: ${log.slice(-1_000)}`);
  renameSync(partial, system);
}

/** No shell and nothing else that is not needed. */
async function unpackRuntime(podman: Podman, system: string): Promise<string> {
  const archives = join(system, "var/cache/apt/archives");
  const folder = join(podman.folder, "runtime");
  mkdirSync(folder, { recursive: true });
  for (const name of runtimePackages) {
    const file = readdirSync(archives).find((each) => each.startsWith(`${name}_`)) ?? name;
    await podman.try(["dpkg-deb", "--extract", join(archives, file), folder]);
  }
  return folder;
}

/** As deploy/README.md says it, with the bases from above. */
export async function buildImage(podman: Podman): Promise<void> {
  await build(podman, image, runtimeBase);
}

/** Compiled here for the other architecture, without a base, which would have to be pulled. */
export async function buildForeign(podman: Podman, architecture: string): Promise<string> {
  const name = `${image}-${architecture}`;
  const own = process.arch === "x64" ? "amd64" : process.arch;
  const platform = ["--platform", `linux/${architecture}`];
  // Buildah before 1.31 does not set it.
  await build(podman, name, "scratch", ...platform, "--build-arg", `BUILDPLATFORM=linux/${own}`);
  return name;
}

async function build(
  podman: Podman,
  name: string,
  base: string,
  ...options: readonly string[]
): Promise<void> {
  const values = {
    BUILD_BASE: buildBase,
    RUNTIME_BASE: base,
    NPM_CONFIG_REGISTRY: await findRegistry(podman),
  };
  const args = Object.entries(values).flatMap(([key, value]) => ["--build-arg", `${key}=${value}`]);
  const file = join(root, "deploy/Containerfile");
  await podman.run("build", "--file", file, "--tag", name, ...args, ...options, root);
}

export async function buildStandIns(podman: Podman): Promise<void> {
  const file = join(import.meta.dir, "stand-ins.Containerfile");
  for (const target of ["postgres", "balancer"]) {
    const options = ["--target", target, "--tag", `${image}-${target}`];
    const base = ["--build-arg", `DEBIAN=${debian}`];
    await podman.run("build", "--file", file, ...options, ...base, import.meta.dir);
  }
}
