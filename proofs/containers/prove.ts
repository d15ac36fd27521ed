/**
 * `npm run prove containers`: builds the image of deploy/Containerfile and starts the services of
 * deploy/compose.yaml, both under load. It needs no image registry: Podman runs on bases that
 * debootstrap makes.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeCaller, readOutput, waitFor } from "../../test/end-to-end/running-service.ts";
import { pickPorts } from "../../test/processes.ts";
import { skipsUnless, skipsWithout } from "../../test/skipping.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { Ledger } from "../ledger.ts";
import { listPlants } from "../plant-client.ts";
import { SteadyCaller } from "../steady-caller.ts";
import { Workload } from "../workload.ts";

const root = join(import.meta.dir, "../..");
const loadMs = 15_000;
/** The balancer asks for the health of an instance every second. */
const apartMs = 3_000;
const load = { clients: 12, bulkPlantsMax: 1_000, seed: 1 };

const isSkipped =
  skipsWithout("podman", "runc", "podman-compose", "debootstrap", "apt-get", "node", "npm") ||
  skipsUnless(process.getuid?.() === 0, "debootstrap needs root");

const folder = makeTemporaryFolder();
const inFolder = (name: string) => join(folder.path, name);
const [port = 0] = pickPorts(1);
const call = makeCaller(`http://127.0.0.1:${port}`);

/** Its own storage and networks, so that Podman neither sees nor touches the user's. */
const files = {
  "containers.conf": `[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "${inFolder("run/libpod")}"
[network]
network_backend = "netavark"
network_config_dir = "${inFolder("networks")}"
`,
  "storage.conf": `[storage]
driver = "overlay"
graphroot = "${inFolder("storage")}"
runroot = "${inFolder("run")}"
`,
  // Debian's packages in place of the official images, under their names in compose.yaml.
  "postgres:18/Containerfile": `FROM localhost/debian
RUN apt-get update && apt-get install --yes --no-install-recommends postgresql
COPY start.sh /
USER postgres
STOPSIGNAL SIGINT
ENTRYPOINT ["sh", "/start.sh"]
`,
  "postgres:18/start.sh": `set -e
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
data=/var/lib/postgresql/data
if [ ! -e "$data/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" >/tmp/password
  initdb -D "$data" -E UTF8 -U "$POSTGRES_USER" --pwfile=/tmp/password --auth=scram-sha-256
  echo "host all all all scram-sha-256" >>"$data/pg_hba.conf"
  echo "CREATE DATABASE $POSTGRES_DB" | postgres --single -D "$data" postgres
fi
exec postgres -D "$data" -c listen_addresses='*'
`,
  // Caddy of Debian 13 and before is too old for deploy/Caddyfile.
  "caddy:2/Containerfile": `FROM localhost/debian
RUN . /etc/os-release && sed --in-place "s/$VERSION_CODENAME/forky/" /etc/apt/sources.list
RUN apt-get -o Acquire::Check-Valid-Until=false update \\
    && apt-get install --yes --no-install-recommends caddy
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile"]
`,
};
const environment = {
  ...process.env,
  CONTAINERS_CONF: inFolder("containers.conf"),
  CONTAINERS_STORAGE_CONF: inFolder("storage.conf"),
  // OCI's own format has no health checks.
  BUILDAH_FORMAT: "docker",
  DEMO_PASSWORD: "s3cret",
  DEMO_PORT: String(port),
};

/** A command that must succeed. Returns what it prints. */
async function run(...command: readonly string[]): Promise<string> {
  const options = { cwd: root, env: environment, stdout: "pipe", stderr: "pipe" } as const;
  const { out, errors, exitCode } = await readOutput(Bun.spawn([...command], options));
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${exitCode}\n${out}\n${errors}`);
  return out.trim();
}

const podman = (...args: readonly string[]) => run("podman", ...args);

/** As deploy/README.md says, with this machine's Node and npm: Debian's may be too old. */
async function buildImage(): Promise<void> {
  const targets = ["--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages"];
  const [mirror = "", suite = ""] = (await run("apt-get", "indextargets", ...targets)).split(/\s/);
  await run("debootstrap", "--variant=minbase", suite, inFolder("debian"), mirror);
  const archive = inFolder("base.tar");
  const ofDebian = ["--anchored", "--exclude=./dev/*", "-C", inFolder("debian"), "."];
  await run("tar", "--create", "--file", archive, ...ofDebian);
  await podman("import", archive, "localhost/debian");
  const certificates = "/etc/ssl/certs/ca-certificates.crt";
  const [node = "", npm = ""] = ["node", "npm"].map((name) => Bun.which(name) ?? "");
  const added = [
    node,
    realpathSync(node),
    npm,
    join(realpathSync(npm), "../../test"),
    certificates,
  ];
  const paths = [...new Set(added)].filter((path) => existsSync(path)).map((path) => `.${path}`);
  await run("tar", "--append", "--file", archive, "-C", "/", ...paths);
  const path = ["--change", `ENV PATH=${dirname(node)}:/usr/bin:/bin`];
  const trust = ["--change", `ENV NODE_EXTRA_CA_CERTS=${certificates}`];
  await podman("import", ...path, ...trust, archive, "localhost/build-base");
  const registry = await run("npm", "config", "get", "registry");
  const build = ["build", "--file", "deploy/Containerfile", "--tag", "plantstore"];
  const bases = ["BUILD_BASE=localhost/build-base", "RUNTIME_BASE=localhost/debian"];
  const values = [...bases, `NPM_CONFIG_REGISTRY=${registry}`];
  await podman(...build, ...values.flatMap((value) => ["--build-arg", value]), ".");
}

async function untilHealthy(container: string): Promise<void> {
  await waitFor(async () => {
    const failed = await podman("healthcheck", "run", container).catch((error) => error);
    const response = await call("GET /readyz").catch(() => undefined);
    return (!(failed instanceof Error) && response?.ok) || undefined;
  });
}

const createToken = (container: string) =>
  podman("exec", container, "plantstore", "token", "create", "alice", "--garden", "busy");

/** If it took longer than compose.yaml allows, Podman would kill it: with another exit code. */
async function stop(container: string): Promise<void> {
  await podman("stop", "--time", "15", container);
  const state = "{{.State.ExitCode}} {{.State.OOMKilled}}";
  expect(await podman("inspect", container, "--format", state)).toBe("0 false");
}

describe.skipIf(isSkipped)("in containers", () => {
  beforeAll(async () => {
    for (const [name, text] of Object.entries(files)) await Bun.write(inFolder(name), text);
    await buildImage();
  });

  afterAll(async () => {
    await podman("rm", "--all", "--force", "--time", "0", "--volumes");
    // Podman mounts a folder of its storage on itself.
    Bun.spawnSync(["umount", inFolder("storage/overlay")]);
    folder[Symbol.dispose]();
  });

  test("the image serves in 256 MiB without rights, stops in time, and keeps all it confirmed", async () => {
    const limits = [
      "--read-only",
      "--cap-drop",
      "ALL",
      "--memory",
      "256m",
      "--memory-swap",
      "256m",
    ];
    const place = ["--publish", `127.0.0.1:${port}:8080`, "--volume", "plants:/data"];
    const serve = ["run", "--detach", "--name", "plants", ...limits, ...place, "plantstore"];
    await podman(...serve);
    await untilHealthy("plants");
    const token = await createToken("plants");
    const ledger = new Ledger();
    const workload = new Workload([{ call, token }], ledger, { ...load, clients: 64 });
    await Bun.sleep(loadMs);
    await workload.stop();
    await stop("plants");
    await podman("rm", "plants");
    await podman(...serve);
    await untilHealthy("plants");
    expect(ledger.promises).toBeGreaterThan(1_000);
    expect(ledger.audit(await listPlants({ call }, token))).toEqual([]);
    await podman("rm", "--force", "plants");
  });

  test("compose.yaml serves on while each instance stops, and keeps all it confirmed", async () => {
    for (const name of ["postgres:18", "caddy:2"]) {
      await podman("build", "--tag", `docker.io/library/${name}`, inFolder(name));
    }
    const file = ["-p", "plants", "-f", "deploy/compose.yaml"];
    const compose = (...args: string[]) => run("podman-compose", ...file, ...args);
    const instances = ["plants_instance-one_1", "plants_instance-two_1"];
    await compose("up", "--detach");
    for (const instance of instances) await untilHealthy(instance);
    // Several, because the balancer keeps a token on one instance.
    const tokens: string[] = [];
    while (tokens.length < 4) tokens.push(await createToken("plants_instance-one_1"));
    const caller = new SteadyCaller({ pickPort: () => port });
    const clients = tokens.map((token) => ({ token, call: caller.call }));
    const ledger = new Ledger();
    const workload = new Workload(clients, ledger, load);
    for (const instance of instances) {
      await Bun.sleep(apartMs);
      await stop(instance);
      await Bun.sleep(apartMs);
      await podman("start", instance);
      await untilHealthy(instance);
    }
    await workload.stop();
    // 503 would mean that the balancer thinks the other instance has failed, too.
    expect([...caller.reasons.keys()].filter((reason) => !reason.endsWith(": 502"))).toEqual([]);
    await compose("down");
    await compose("up", "--detach");
    await untilHealthy("plants_instance-two_1");
    expect(ledger.audit(await listPlants({ call }, tokens[0] ?? ""))).toEqual([]);
    await compose("down", "--volumes");
  });
});
