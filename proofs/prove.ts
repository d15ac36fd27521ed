/** `npm run prove` lists the proofs. `npm run prove NAME [count] [seed]` runs one. */
import { join } from "node:path";

/** `minutes` on two processors. Without what it needs beyond npm's packages, a proof is skipped. */
type Listed = readonly [does: string, minutes: number, needs?: string];

const proofs: Readonly<Record<string, Listed>> = {
  failover: [
    "PostgreSQL's primary is lost under load, behind HAProxy",
    15,
    "Debian's haproxy; with patroni or pgbouncer after the name: those, postgresql and etcd-server",
  ],
  faults: ["each file operation fails, in every way", 35, "Linux on x64 or arm64"],
  histories: ["concurrent clients, compared with a model", 20],
  hostile: ["crowds and overload try to stop it or hold up others", 30, "Linux"],
  kills: ["kill -9 and SIGTERM at any moment", 40],
  listeners: ["streams of events: none missed, soon there, cheap while idle", 15, "Linux"],
  "power-cuts": ["the disk as a power cut may leave it", 45, "Linux on x64 or arm64"],
  "self-tests": ["builds that are broken on purpose fail the proofs", 1, "Linux on x64 or arm64"],
  upgrade: [
    "instances of 2.0 are replaced under load",
    3,
    "a checkout of 2.0 with its packages: npm run prove upgrade -- --previous DIR",
  ],
  soak: ["two hours at half load", 120],
};

function list(): string {
  const lines = Object.entries(proofs).map(([name, [does, minutes, needs]]) => {
    const line = `  ${name.padEnd(12)}${String(minutes).padStart(4)} min  ${does}`;
    return needs === undefined ? line : `${line}\n${" ".repeat(24)}needs ${needs}`;
  });
  return `npm run prove NAME [count] [seed]:\n\n${lines.join("\n")}\n`;
}

const [chosen = "", ...args] = process.argv.slice(2);
if (!(chosen in proofs)) {
  process.stdout.write(chosen === "" ? list() : `There is no proof "${chosen}".\n${list()}`);
  process.exit(chosen === "" ? 0 : 1);
}

const selfTests = ["test", "--timeout=600000", "./proofs/broken-builds.selftest.ts"];
const command = chosen === "self-tests" ? selfTests : [`proofs/${chosen}/prove.ts`];
const child = Bun.spawn([process.execPath, ...command, ...args], {
  cwd: join(import.meta.dir, ".."),
  stdio: ["inherit", "inherit", "inherit"],
});
// The proof ends what it started. A terminal sends SIGINT to it, too.
process.on("SIGINT", () => {});
process.on("SIGTERM", (signal) => child.kill(signal));
process.exit((await child.exited) === 0 ? 0 : 1);
