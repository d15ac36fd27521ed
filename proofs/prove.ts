/**
 * `npm run prove` lists the proofs, the long forms of the suites here. `npm run prove NAME [count]
 * [seed]` runs one, and `npm run prove all` every one.
 */
import { join } from "node:path";
import type { Subprocess } from "bun";

/** `minutes` on two processors. Without what it needs beyond npm's packages, a proof is skipped. */
type Listed = readonly [does: string, minutes: number, needs?: string];

/** The soak is last, because it takes longest. */
const proofs: Readonly<Record<string, Listed>> = {
  failover: [
    "PostgreSQL's primary is lost under load, behind HAProxy",
    15,
    "Debian's haproxy; with patroni or pgbouncer after the name: those, postgresql and etcd-server",
  ],
  faults: ["each file operation fails, in every way", 35, "Linux on x64 or arm64"],
  histories: ["concurrent clients, compared with a model", 20],
  hostile: ["crowds and overload try to stop it or hold up others", 35, "Linux"],
  kills: ["kill -9 and SIGTERM at any moment", 40],
  listeners: ["streams of events: none missed, soon there, cheap while idle", 15, "Linux"],
  "power-cuts": ["the disk as a power cut may leave it", 45, "Linux on x64 or arm64"],
  "self-tests": ["builds that are broken on purpose fail the proofs", 1],
  upgrade: [
    "instances of 2.0 are replaced under load",
    3,
    "a checkout of 2.0 with its packages: npm run prove upgrade -- --previous DIR",
  ],
  soak: ["two hours at half load", 120],
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
  const isSelfTest = name === "self-tests";
  const selfTests = ["test", "--timeout=600000", "./proofs/broken-builds.selftest.ts"];
  const command = isSelfTest ? selfTests : [`proofs/${name}/prove.ts`];
  running = Bun.spawn([process.execPath, ...command, ...args], {
    cwd: join(import.meta.dir, ".."),
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
  const lines = Object.entries(proofs).map(([name, [does, minutes, needs]]) => {
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
