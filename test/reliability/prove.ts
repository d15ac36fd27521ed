/**
 * `npm run prove` lists the proofs, the long forms of the suites here. `npm run prove NAME [count]
 * [seed]` runs one, and `npm run prove all` every one.
 */
import { join } from "node:path";
import type { Subprocess } from "bun";

interface Listed {
  readonly does: string;
  /** On two processors, by default. */
  readonly minutes: number;
  /** Beyond what npm installs. A proof without it says so and is skipped. */
  readonly needs?: string;
  /** What `bun` runs, if it isn't the `prove.ts` in the folder of that name. */
  readonly run?: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
}

const root = join(import.meta.dir, "../..");
const interposed = "Linux on x64 or arm64";
const asTests = ["test", "--timeout=600000"];

/** The soak is last, because it takes longest. */
const proofs: Readonly<Record<string, Listed>> = {
  backups: { does: "stores are lost and restored, on every pair of engines", minutes: 30 },
  containers: {
    does: "the image and compose.yaml, built and run by Podman",
    minutes: 5,
    needs: "podman, podman-compose, an image registry, npm's registry",
    run: [...asTests, "./test/reliability/containers/prove.ts"],
  },
  failover: { does: "PostgreSQL's primary is lost under load", minutes: 15 },
  faults: { does: "each file operation fails, in every way", minutes: 35, needs: interposed },
  generated: { does: "random requests, made from those of the contract", minutes: 40 },
  histories: { does: "concurrent clients, compared with a model", minutes: 20 },
  hostile: { does: "thousands of slow and idle connections", minutes: 12 },
  kills: { does: "kill -9 and SIGTERM at any moment", minutes: 35 },
  migrations: { does: "ten instances start at once on an empty database", minutes: 3 },
  overload: { does: "ten times the load that the service can take", minutes: 5 },
  patroni: {
    does: "the leader of a Patroni cluster fails",
    minutes: 20,
    needs: "Debian's postgresql, patroni and etcd-server",
  },
  pgbouncer: {
    does: "PgBouncer and the PostgreSQL behind it fail",
    minutes: 10,
    needs: "Debian's postgresql and pgbouncer",
  },
  "power-cuts": {
    does: "the disk as a power cut may leave it",
    minutes: 15,
    needs: interposed,
  },
  proxies: {
    does: "instances restart behind nginx and HAProxy",
    minutes: 3,
    needs: "Debian's nginx and haproxy",
  },
  readme: {
    does: "the README's commands, as a new user runs them",
    minutes: 5,
    needs: "npm's registry",
    run: [...asTests, "test/end-to-end/readme.test.ts"],
    variables: { PROVE_README: "1" },
  },
  "self-tests": {
    does: "builds that are broken on purpose fail the suites",
    minutes: 5,
    run: [...asTests, "./test/reliability/broken-builds.selftest.ts"],
  },
  upgrade: {
    does: "instances of an older version are replaced under load",
    minutes: 3,
    needs: "a checkout of it, as in: npm run prove upgrade -- --previous DIR",
  },
  soak: { does: "two hours at half load", minutes: 120 },
};

let running: Subprocess | undefined;
let isStopped = false;
// The proof ends what it started. A terminal sends SIGINT to it, too.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    isStopped = true;
    if (signal === "SIGTERM") running?.kill(signal);
  });
}

function run(name: string, args: readonly string[] = []): Promise<number> {
  const { run = [`test/reliability/${name}/prove.ts`], variables } = proofs[name] as Listed;
  running = Bun.spawn([process.execPath, ...run, ...args], {
    cwd: root,
    env: { ...process.env, ...variables },
    stdio: ["inherit", "inherit", "inherit"],
  });
  return running.exited;
}

async function runAll(): Promise<number> {
  const failed: string[] = [];
  for (const name of Object.keys(proofs)) {
    if (isStopped) return 1;
    process.stdout.write(`\n${name}\n`);
    if ((await run(name)) !== 0) failed.push(name);
  }
  process.stdout.write(failed.length > 0 ? `\nfailed: ${failed.join(", ")}\n` : "\nall passed\n");
  return failed.length > 0 ? 1 : 0;
}

function list(): string {
  const lines = Object.entries(proofs).map(([name, { does, minutes, needs }]) => {
    const line = `  ${name.padEnd(12)}${String(minutes).padStart(4)} min  ${does}`;
    return needs === undefined ? line : `${line}\n${" ".repeat(24)}needs ${needs}`;
  });
  return `npm run prove NAME [count] [seed], or npm run prove all:\n\n${lines.join("\n")}\n`;
}

const [name, ...args] = process.argv.slice(2);
if (name === undefined) process.stdout.write(list());
else if (name === "all") process.exitCode = await runAll();
else if (Object.hasOwn(proofs, name)) process.exitCode = await run(name, args);
else {
  process.stderr.write(`There is no proof "${name}".\n${list()}`);
  process.exitCode = 1;
}
