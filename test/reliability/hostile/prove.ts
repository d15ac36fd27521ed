/**
 * `npm run prove:hostile -- [rounds] [seed] [connections]`: do slow clients slow the good ones
 * down?
 */
import { readFileSync } from "node:fs";
import { prove, readNumbers } from "../proof.ts";
import { takeVitalSigns, type VitalSigns } from "../vital-signs.ts";
import { percentile, SlowAttack } from "./slow-attack.ts";
import { type SlowReport, slownesses } from "./slow-clients.ts";

const [, , wantedConnections = 5_000] = readNumbers();
/** In all of the attack: also while those who were thrown out come back. */
const answersEach = 1_500;
/** What good clients may wait under attack, in terms of what they wait without one. */
const slowdownMax = 2;
/**
 * Beyond what docs/interface.md says of headers and bodies, on a machine with other things to do.
 */
const stayMaxMs = 30_000;
/** Else nobody could have stayed too long. */
const attackMs = stayMaxMs + 5_000;

/** The service and the attackers need a file each. */
const limit = Number(
  /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1],
);
const connections = Math.min(wantedConnections, limit - 500);
if (connections < wantedConnections) {
  process.stdout.write(`ONLY ${connections} CONNECTIONS: no more files may be open (ulimit -n)\n`);
}

const attack = await SlowAttack.start();
await attack.measure(answersEach);
const before = takeVitalSigns(attack.service.pid);
const calm: number[] = [];
const attacked: number[] = [];
let worst: VitalSigns = before;

await prove({
  name: "hostile",
  trials: `rounds with ${connections.toLocaleString("en")} slow connections`,
  count: 5,
  async run() {
    const without = await attack.measure(answersEach);
    const under = await attack.attack(connections, answersEach, attackMs);
    calm.push(...without.waitsMs);
    attacked.push(...under.waitsMs);
    if (under.signs.residentMb > worst.residentMb) worst = under.signs;
    return {
      faults: [...without.faults, ...under.faults, ...findStays(under.slow)],
      figures: {
        "answers without": without.waitsMs.length,
        "answers under attack": under.waitsMs.length,
        ...Object.fromEntries(
          slownesses.map((kind) => [`ended (${kind})`, under.slow.ended[kind]]),
        ),
      },
    };
  },
  async conclude() {
    const after = takeVitalSigns(attack.service.pid);
    await attack.stop();
    const isFault = percentile(attacked, 0.99) > slowdownMax * percentile(calm, 0.99);
    const text = [
      `good clients without an attack: ${show(calm)}; under attack: ${show(attacked)}`,
      `resident memory ${before.residentMb.toFixed(0)} MB before, ${worst.residentMb.toFixed(0)} MB ` +
        `under attack, ${after.residentMb.toFixed(0)} MB after; open files ${before.openFiles}, ` +
        `${worst.openFiles}, ${after.openFiles}`,
      `p99 within ${slowdownMax} times: ${isFault ? "NO" : "yes"}`,
    ].join("\n");
    return { text, isFault };
  },
});

/** A slow reader gets on, if only a little, and may stay. */
function findStays({ longestMs }: SlowReport): string[] {
  return slownesses
    .filter((kind) => kind !== "reading" && longestMs[kind] > stayMaxMs)
    .map((kind) => `a connection of the kind "${kind}" stayed for ${longestMs[kind]} ms`);
}

function show(waitsMs: readonly number[]): string {
  return `p50 ${percentile(waitsMs, 0.5).toFixed(1)} ms, p99 ${percentile(waitsMs, 0.99).toFixed(1)} ms`;
}
