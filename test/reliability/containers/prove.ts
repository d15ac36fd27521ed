/**
 * `npm run prove containers`: the image of deploy/Containerfile and the services of
 * deploy/compose.yaml, built and run by Podman. With `PLANTSTORE_CONTAINERS_CACHE=FOLDER` the bases
 * and images are kept there: later runs take two minutes instead of five.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  type Finished,
  makeCaller,
  type RunningService,
  waitFor,
} from "../../end-to-end/running-service.ts";
import { pickPorts } from "../../processes.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { Ledger } from "../ledger.ts";
import { listPlants } from "../plant-client.ts";
import { SteadyCaller } from "../steady-caller.ts";
import { Workload } from "../workload.ts";
import {
  buildBases,
  buildForeign,
  buildImage,
  buildStandIns,
  findRegistry,
  image,
} from "./images.ts";
import { Podman } from "./podman.ts";

const memoryMaxMb = 256;
const loadMs = 15_000;
/** What deploy/compose.yaml allows. */
const stopMaxMs = 15_000;
/** Between the stop and the start of an instance: the balancer asks for its health every second. */
const apartMs = 3_000;

const hardened = [
  ...["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"],
  ...["--memory", `${memoryMaxMb}m`, "--memory-swap", `${memoryMaxMb}m`],
];

const missing = Podman.missing();
if (missing !== undefined) say(`skipped: ${missing}`);

describe.skipIf(missing !== undefined)("in containers", () => {
  const figures: string[] = [];
  let podman: Podman;

  beforeAll(async () => {
    podman = await Podman.configure(process.env.PLANTSTORE_CONTAINERS_CACHE);
    await buildBases(podman);
    await buildImage(podman);
    figures.push(await podman.run("--version"));
  });

  afterAll(async () => {
    await podman.clear();
    say(figures.join("; "));
  });

  /** The mapped port is any free one. */
  async function serve(...options: readonly string[]): Promise<Pick<RunningService, "call">> {
    const port = ["--publish", "127.0.0.1::8080"];
    await podman.run(
      "run",
      "--detach",
      "--name",
      "plants",
      ...hardened,
      ...port,
      ...options,
      image,
    );
    return connect();
  }

  async function connect(): Promise<Pick<RunningService, "call">> {
    const address = await podman.run("port", "plants", "8080");
    const service = { call: makeCaller(`http://${address}`) };
    await waitFor(async () => {
      const response = await service.call("GET /readyz").catch(() => undefined);
      return response?.ok || undefined;
    });
    return service;
  }

  async function createToken(container: string, ...options: string[]): Promise<string> {
    const command = ["plantstore", "token", "create", "alice", ...options];
    const out = await podman.run("exec", container, ...command);
    return /plant_\w+/.exec(out)?.[0] ?? out;
  }

  /** As the health check of the image, or of its service, would be run. */
  async function checkHealth(container: string): Promise<string> {
    const { exitCode } = await podman.try(["podman", "healthcheck", "run", container]);
    const log = await podman.inspect(container, "{{json .State.Health.Log}}");
    return `${exitCode}: ${JSON.parse(log).at(-1)?.Output}`;
  }

  async function inImage<Result>(name: string, look: (files: string) => Result): Promise<Result> {
    const files = await podman.run("image", "mount", name);
    try {
      return look(files);
    } finally {
      await podman.run("image", "unmount", name);
    }
  }

  /** A start that fails. */
  function tryToServe(...options: readonly string[]): Promise<Finished> {
    return podman.try(["podman", "run", "--rm", "--timeout", "20", ...hardened, ...options, image]);
  }

  test("the image is small, has no shell, and is for one user", async () => {
    const bytes = Number(await podman.run("image", "inspect", image, "--format", "{{.Size}}"));
    figures.push(`image ${(bytes / 1e6).toFixed(0)} MB`);
    expect(bytes).toBeLessThan(200e6);
    const shell = await podman.try(["podman", "run", "--rm", "--entrypoint", "sh", image]);
    expect(shell.errors).toContain("not found");
    const user = await podman.run("image", "inspect", image, "--format", "{{.Config.User}}");
    expect(user).toBe("65532:65532");
    // A new volume of Docker's belongs to the folder's owner; Podman gives it to the user anyway.
    expect(await inImage(image, (files) => statSync(join(files, "data")).uid)).toBe(65532);
  });

  test("it serves without rights, within its memory, and keeps all it confirmed", async () => {
    const service = await serve("--volume", "plants:/data");
    const pid = await podman.inspect("plants", "{{.State.Pid}}");
    expect(readStatus(pid)).toMatchObject({
      Uid: "65532",
      CapEff: zeros,
      CapBnd: zeros,
      NoNewPrivs: "1",
    });
    expect(await checkHealth("plants")).toBe("0: ready");

    const token = await createToken("plants");
    const ledger = new Ledger();
    const load = new Workload([{ ...service, token }], ledger, {
      ...{ clients: 64, linesMax: 1_000, seed: 1 },
    });
    await Bun.sleep(loadMs);
    await load.stop();
    const peakMb = Number.parseInt(readStatus(pid).VmHWM ?? "", 10) / 1_024;
    figures.push(`${ledger.promises} confirmed writes, at most ${peakMb.toFixed(0)} MiB resident`);
    expect(peakMb).toBeLessThan(memoryMaxMb);
    expect(ledger.promises).toBeGreaterThan(1_000);

    const startedAtMs = performance.now();
    await podman.run("stop", "--time", String(stopMaxMs / 1_000), "plants");
    const stopMs = performance.now() - startedAtMs;
    figures.push(`stopped in ${(stopMs / 1_000).toFixed(1)} s`);
    expect(stopMs).toBeLessThan(stopMaxMs);
    const end = await podman.inspect("plants", "{{.State.ExitCode}} {{.State.OOMKilled}}");
    expect(end).toBe("0 false");

    await podman.run("start", "plants");
    const again = await connect();
    expect(ledger.audit(await listPlants(again, token))).toEqual([]);
    await podman.run("rm", "--force", "plants");
    const anew = await serve("--volume", "plants:/data");
    expect(ledger.audit(await listPlants(anew, token))).toEqual([]);
  });

  test("the memory limit is enforced", async () => {
    const limit = readMemoryLimit(await podman.inspect("plants", "{{.State.Pid}}"));
    figures.push(`cgroup limit ${limit}`);
    expect(limit).toBe(`${memoryMaxMb * 2 ** 20}`);
  });

  test("it is unhealthy while it hangs", async () => {
    await podman.run("kill", "--signal", "STOP", "plants");
    expect(await checkHealth("plants")).toMatch(/^1: plantstore: No response from .* timed out/);
    await podman.run("kill", "--signal", "CONT", "plants");
    expect(await checkHealth("plants")).toBe("0: ready");
  });

  test("a second one on the same volume refuses to start", async () => {
    const { errors, exitCode } = await tryToServe("--volume", "plants:/data");
    expect(exitCode).toBe(1);
    expect(errors).toContain("another process is serving it already");
    await podman.run("rm", "--force", "--volumes", "plants");
  });

  test("a volume of another user gets a message with the number of the right one", async () => {
    using folder = makeTemporaryFolder();
    const { errors, exitCode } = await tryToServe("--volume", `${folder.path}:/data`);
    expect(exitCode).toBe(1);
    expect(errors).toBe(
      "plantstore: Cannot open /data/plants.db: permission is denied " +
        "(user 65532 must be able to write the file and its folder).",
    );
    // What deploy/README.md advises.
    await serve("--volume", `${folder.path}:/data:U`);
    await podman.run("rm", "--force", "--volumes", "plants");
  });

  test("without a volume, or with a read-only one, the message names it", async () => {
    const readOnly = ["--volume", "plants:/data:ro"];
    for (const options of [["--image-volume", "ignore"], readOnly]) {
      const { errors, exitCode } = await tryToServe(...options);
      expect(exitCode).toBe(1);
      expect(errors).toBe(
        "plantstore: Cannot open /data/plants.db: it is on a read-only disk " +
          "(mount a writable volume there, or choose another file).",
      );
    }
  });

  test("the image for the other architecture is built without emulation", async () => {
    const other = process.arch === "x64" ? "arm64" : "amd64";
    const name = await buildForeign(podman, other);
    expect(await podman.run("image", "inspect", name, "--format", "{{.Architecture}}")).toBe(other);
    const machine = await inImage(name, (files) =>
      readFileSync(join(files, "usr/local/bin/plantstore")).readUInt16LE(18),
    );
    expect(machine).toBe(other === "amd64" ? 62 : 183);
  });

  describe("deploy/compose.yaml", () => {
    const one = "deploy_instance-one_1";
    const two = "deploy_instance-two_1";
    const postgres = "deploy_postgres_1";
    const [port = 0] = pickPorts(1);
    const balancer = { call: makeCaller(`http://127.0.0.1:${port}`) };
    let token = "";

    async function compose(...args: readonly string[]): Promise<string> {
      const files = ["deploy/compose.yaml", "test/reliability/containers/compose.override.yaml"];
      const variables = {
        DEMO_PASSWORD: "s3cret",
        DEMO_PORT: String(port),
        NPM_CONFIG_REGISTRY: await findRegistry(podman),
      };
      const command = [
        ...["env", ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)],
        ...["podman-compose", ...files.flatMap((file) => ["-f", file]), ...args],
      ];
      const { out, errors, exitCode } = await podman.try(command);
      if (exitCode !== 0) throw new Error(`compose ${args[0]}: ${out}\n${errors}`);
      return out;
    }

    async function plantsAt(container: string): Promise<string> {
      const environment = ["--env", `PLANTSTORE_TOKEN=${token}`];
      return podman.run("exec", ...environment, container, "plantstore", "plants", "list");
    }

    function untilHealthy(container: string): Promise<true> {
      return waitFor(
        async () => (await checkHealth(container)) === "0: ready" || undefined,
        undefined,
        60_000,
      );
    }

    test("starts two instances, and what is created at one is listed by both", async () => {
      await buildStandIns(podman);
      await compose("up", "--build", "--detach");
      await untilHealthy(one);
      await untilHealthy(two);
      const out = await compose("run", "--rm", "instance-one", "token", "create", "alice");
      token = /plant_\w{49}/.exec(out)?.[0] ?? out;
      const fern = '"Fern"';
      await podman.run(
        ...["exec", "--env", `PLANTSTORE_TOKEN=${token}`, one],
        ...["plantstore", "plants", "add", "Fern"],
      );
      expect(await plantsAt(two)).toContain(fern);
      const listed = await balancer.call("GET /plants", { token });
      expect(await listed.text()).toContain(fern);
      const versions = await Promise.all([
        podman.run("exec", postgres, "psql", "--version"),
        podman.run("exec", "deploy_balancer_1", "caddy", "version"),
      ]);
      figures.push((await podman.try(["podman-compose", "--version"])).out.split("\n")[2] ?? "");
      figures.push(versions.join("; Caddy "));
    });

    test("clients that retry go on while one instance after the other is stopped", async () => {
      const ledger = new Ledger();
      const caller = new SteadyCaller({ pickPort: () => port });
      const { call } = caller;
      // Several, because the balancer keeps a token on one instance.
      const tokens: string[] = [];
      while (tokens.length < 4) tokens.push(await createToken(one, "--garden", "busy"));
      const clients = new Workload(
        tokens.map((token) => ({ token, call })),
        ledger,
        { clients: 12, linesMax: 1_000, seed: 1, slowReaders: { count: 1, port } },
      );
      for (const instance of [one, two, one, two]) {
        await Bun.sleep(apartMs);
        await podman.run("stop", instance);
        expect(await podman.inspect(instance, "{{.State.ExitCode}}")).toBe("0");
        await Bun.sleep(apartMs);
        await podman.run("start", instance);
        await untilHealthy(instance);
      }
      await clients.stop();
      const { requests } = clients;
      figures.push(
        `4 stops, ${requests} requests, repeated after: ${JSON.stringify([...caller.reasons])}`,
      );
      expect(ledger.audit(await listPlants(balancer, tokens[0] ?? ""))).toEqual([]);
      // An instance that stops resets a few connections, which are 502. 503 would mean that the
      // balancer takes the other instance for failed, too.
      expect([...caller.reasons.keys()].filter((reason) => !reason.endsWith(": 502"))).toEqual([]);
    });

    test("without PostgreSQL the instances are unhealthy, and recover with it", async () => {
      await podman.run("stop", postgres);
      for (const instance of [one, two]) {
        expect(await checkHealth(instance)).toMatch(/^1: .*is not ready \(503\)/);
      }
      await podman.run("start", postgres);
      await untilHealthy(one);
      await untilHealthy(two);
    });

    test("after down and up the plants are still there", async () => {
      await compose("down");
      await compose("up", "--detach");
      await untilHealthy(two);
      expect(await plantsAt(two)).toContain('"Fern"');
      await compose("down", "--volumes");
    });
  });
});

const zeros = "0".repeat(16);

/** The first value of each line of the kernel's status of a process. */
function readStatus(pid: string): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, "utf8").matchAll(/^(\w+):\s+(\S+)/gm);
  return Object.fromEntries([...lines].map(([, name = "", value = ""]) => [name, value]));
}

/** The memory limit that the kernel holds a process to, with cgroups of either version. */
function readMemoryLimit(pid: string): string {
  const groups = readFileSync(`/proc/${pid}/cgroup`, "utf8");
  const [, first] = /^\d+:memory:(.*)$/m.exec(groups) ?? [];
  const [, second = ""] = /^0::(.*)$/m.exec(groups) ?? [];
  const file =
    first === undefined
      ? `/sys/fs/cgroup${second}/memory.max`
      : `/sys/fs/cgroup/memory${first}/memory.limit_in_bytes`;
  return readFileSync(file, "utf8").trim();
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
