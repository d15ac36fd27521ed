/**
 * `npm run prove containers`: the image of deploy/Containerfile and the services of
 * deploy/compose.yaml, built and run by Podman. Other bases and another registry for npm come from
 * the environment: `BUILD_BASE`, `RUNTIME_BASE`, `NPM_CONFIG_REGISTRY`.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Finished,
  makeCaller,
  type RunningService,
  readOutput,
  waitFor,
} from "../../end-to-end/running-service.ts";
import { pickPorts } from "../../processes.ts";
import { Ledger } from "../ledger.ts";
import { listPlants } from "../plant-client.ts";
import { SteadyCaller } from "../steady-caller.ts";
import { Workload } from "../workload.ts";

const image = "localhost/plantstore-proof";
const container = "plantstore-proof";
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
const zeros = "0".repeat(16);

const missing = ["podman", "podman-compose"].filter((tool) => Bun.which(tool) === null);
if (missing.length > 0) say(`skipped: not installed: ${missing.join(", ")}`);

async function tryTo(...command: readonly string[]): Promise<Finished> {
  const child = Bun.spawn([...command], {
    cwd: join(import.meta.dir, "../../.."),
    // OCI's own format has no health checks.
    env: { ...process.env, BUILDAH_FORMAT: "docker", DEMO_PASSWORD: "s3cret", DEMO_PORT: port },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  return await readOutput(child);
}

async function run(...command: readonly string[]): Promise<string> {
  const { out, errors, exitCode } = await tryTo(...command);
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${exitCode}\n${out}\n${errors}`);
  return out.trim();
}

const podman = (...args: readonly string[]) => run("podman", ...args);
const compose = (...args: readonly string[]) =>
  run("podman-compose", "-f", "deploy/compose.yaml", ...args);
const inspect = (name: string, format: string) => podman("inspect", name, "--format", format);

/** As the health check of the image, or of its service, would be run. */
async function isHealthy(name: string): Promise<boolean> {
  return (await tryTo("podman", "healthcheck", "run", name)).exitCode === 0;
}

const untilHealthy = (name: string) =>
  waitFor(async () => (await isHealthy(name)) || undefined, undefined, 60_000);

const [port = ""] = pickPorts(1).map(String);

describe.skipIf(missing.length > 0)("in containers", () => {
  beforeAll(async () => {
    const names = ["BUILD_BASE", "RUNTIME_BASE", "NPM_CONFIG_REGISTRY"];
    const given = names.filter((name) => process.env[name] !== undefined);
    const args = given.flatMap((name) => ["--build-arg", `${name}=${process.env[name]}`]);
    await podman("build", "--file", "deploy/Containerfile", "--tag", image, ...args, ".");
    say(await podman("--version"));
  });

  afterAll(async () => {
    await tryTo("podman", "rm", "--force", "--volumes", container);
    await tryTo("podman", "volume", "rm", container);
  });

  test("the image has no shell, and is for one user", async () => {
    const bytes = Number(await podman("image", "inspect", image, "--format", "{{.Size}}"));
    expect(bytes).toBeLessThan(200e6);
    expect((await tryTo("podman", "run", "--rm", "--entrypoint", "sh", image)).exitCode).toBe(127);
    const user = await podman("image", "inspect", image, "--format", "{{.Config.User}}");
    expect(user).toBe("65532:65532");
  });

  test("it serves without rights, within its memory, and keeps all it confirmed", async () => {
    const options = ["--publish", `127.0.0.1:${port}:8080`, "--volume", `${container}:/data`];
    await podman("run", "--detach", "--name", container, ...hardened, ...options, image);
    await untilHealthy(container);
    const pid = await inspect(container, "{{.State.Pid}}");
    const rights = { Uid: "65532", CapEff: zeros, CapBnd: zeros, NoNewPrivs: "1" };
    expect(readStatus(pid)).toMatchObject(rights);

    const service = { call: makeCaller(`http://127.0.0.1:${port}`) };
    const token = await createToken(container);
    const ledger = new Ledger();
    const load = new Workload([{ ...service, token }], ledger, {
      ...{ clients: 64, linesMax: 1_000, seed: 1 },
    });
    await Bun.sleep(loadMs);
    const peakMb = Number.parseInt(readStatus(pid).VmHWM ?? "", 10) / 1_024;
    await load.stop();
    expect(peakMb).toBeLessThan(memoryMaxMb);
    expect(ledger.promises).toBeGreaterThan(1_000);
    say(`${ledger.promises} confirmed writes, at most ${peakMb.toFixed(0)} MiB resident`);

    await podman("stop", "--time", String(stopMaxMs / 1_000), container);
    const end = await inspect(container, "{{.State.ExitCode}} {{.State.OOMKilled}}");
    expect(end).toBe("0 false");
    await podman("start", container);
    await untilHealthy(container);
    expect(ledger.audit(await listPlants(service, token))).toEqual([]);
    await podman("kill", "--signal", "STOP", container);
    expect(await isHealthy(container)).toBe(false);
    await podman("rm", "--force", container);
  });

  test("with Compose, clients that retry go on while one instance after the other is stopped", async () => {
    const instances = ["deploy_instance-one_1", "deploy_instance-two_1"] as const;
    await compose("up", "--build", "--detach");
    try {
      for (const instance of instances) await untilHealthy(instance);
      // Several, because the balancer keeps a token on one instance.
      const tokens: string[] = [];
      while (tokens.length < 4) tokens.push(await createToken(instances[0]));
      const ledger = new Ledger();
      const caller = new SteadyCaller({ pickPort: () => Number(port) });
      const clients = new Workload(
        tokens.map((token) => ({ token, call: caller.call })),
        ledger,
        { clients: 12, linesMax: 1_000, seed: 1, slowReaders: { count: 1, port: Number(port) } },
      );
      for (const instance of [...instances, ...instances]) {
        await Bun.sleep(apartMs);
        await podman("stop", instance);
        expect(await inspect(instance, "{{.State.ExitCode}}")).toBe("0");
        await Bun.sleep(apartMs);
        await podman("start", instance);
        await untilHealthy(instance);
      }
      await clients.stop();
      say(`4 stops, ${clients.figures.requests} requests, ${caller.listReasons()}`);
      expect(ledger.audit(await listPlants(caller, tokens[0] ?? ""))).toEqual([]);
      // An instance that stops resets a few connections, which are 502. 503 would mean that the
      // balancer takes the other instance for failed, too.
      expect([...caller.reasons.keys()].filter((reason) => !reason.endsWith(": 502"))).toEqual([]);
    } finally {
      await compose("down", "--volumes");
    }
  });
});

async function createToken(name: string): Promise<RunningService["token"]> {
  const out = await podman("exec", name, "plantstore", "token", "create", "alice");
  return /plant_\w+/.exec(out)?.[0] ?? out;
}

/** The first value of each line of the kernel's status of a process. */
function readStatus(pid: string): Record<string, string> {
  const lines = readFileSync(`/proc/${pid}/status`, "utf8").matchAll(/^(\w+):\s+(\S+)/gm);
  return Object.fromEntries([...lines].map(([, name = "", value = ""]) => [name, value]));
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
