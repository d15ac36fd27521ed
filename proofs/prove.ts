/** `npm run prove` lists the proofs. `npm run prove NAME [count] [seed]` runs one. */
import { join } from "node:path";

/** Minutes on two processors. */
const proofs: Readonly<Record<string, readonly [minutes: number, does: string]>> = {
  failover: [15, "PostgreSQL's primary is lost (needs haproxy; or add patroni or pgbouncer)"],
  faults: [35, "file operations fail, in every way (needs Linux on x64 or arm64)"],
  fleet: [5, "ten instances: restarts, changing tokens (needs haproxy, pgbouncer, Linux)"],
  histories: [20, "concurrent clients, compared with a model"],
  hostile: [30, "crowds and overload try to stop it or hold up others (needs Linux)"],
  imports: [8, "imports are stopped or cut off: what they say they added is what is stored"],
  kills: [40, "kill -9 and SIGTERM at any moment"],
  listeners: [15, "streams of events: none missed, soon there, cheap while idle (needs Linux)"],
  "power-cuts": [45, "the disk as a power cut may leave it (needs Linux on x64 or arm64)"],
  "self-tests": [1, "builds that are broken on purpose fail (needs Linux on x64 or arm64)"],
  upgrade: [3, "instances of 3.0 are replaced, and back (needs -- --previous, a checkout of it)"],
  updates: [1, "edited exports are imported with --update, while others change the same plants"],
  soak: [120, "two hours at half load (needs Linux)"],
};

function list(): string {
  const lines = Object.entries(proofs).map(
    ([name, [minutes, does]]) =>
      `  ${name.padEnd(12)}${String(minutes).padStart(4)} min  ${does}\n`,
  );
  return `npm run prove NAME [count] [seed]:\n\n${lines.join("")}`;
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
