/** Each proof in short: a few of its trials, which find nothing. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { serveHere } from "../testing/running-service.ts";
import { skipsOutsideLinux, skipsUnless } from "../testing/skipping.ts";
import { skipsWithoutPooler } from "../testing/transaction-pooler.ts";
import { hasHaproxy } from "./failover/database-proxy.ts";
import { FailoverTrial } from "./failover/prove.ts";
import { inject } from "./faults/prove.ts";
import { runFleet } from "./fleet/prove.ts";
import { runHistory, startDeployments, stopAll } from "./histories/prove.ts";
import { type End, endImport, type Front } from "./imports/prove.ts";
import { isInterposable } from "./interposed-io/interposed-io.ts";
import { live, moments } from "./kills/prove.ts";
import { forwardUnderKills } from "./listeners/forwarder.ts";
import { followBoth } from "./listeners/prove.ts";
import { cutPower } from "./power-cuts/backup-cuts.ts";
import { checkpointOften, cutRecording } from "./power-cuts/prove.ts";
import { joinTrials, type Trial } from "./proof.ts";
import { shortRun, soak } from "./soak/prove.ts";
import { updateGarden } from "./updates/prove.ts";

setDefaultTimeout(240_000);

const seed = 7;
const isNotInterposable = skipsUnless(isInterposable, "needs Linux on x64 or arm64");

function form(name: string, isSkipped: boolean, run: () => Promise<Trial>): void {
  test.skipIf(isSkipped)(name, async () => {
    const { faults, figures } = await run();
    expect(faults).toEqual([]);
    expect(Object.entries(figures).filter(([, value]) => value === 0)).toEqual([]);
  });
}

form("every response holds, whenever the service is killed", false, () => {
  // The next one has the stop, whose long list takes long to fill.
  const ends = moments.filter((moment) => moment !== "stop");
  return live({ seed, ends, threads: 2, isSecure: false });
});

form("a stop cuts no response short over TLS", false, () =>
  live({ seed, ends: ["stop"], threads: 1, isSecure: true }),
);

form("after a power cut, every confirmed write is there", isNotInterposable, async () => {
  using changed = checkpointOften(20);
  return await cutRecording({ seed, writes: 120, program: changed.program }, 10);
});

form(
  "a power cut during a backup or a restore leaves no half a file",
  isNotInterposable,
  async () => {
    const faults = [...(await cutPower("backup")), ...(await cutPower("restore"))];
    return { faults, figures: {} };
  },
);

form("a forwarder that is killed delivers every event, in order", false, () =>
  forwardUnderKills(500, 5, seed),
);

form("file operations fail here and there, and break no promise", isNotInterposable, async () => {
  const kinds = ["open", "write", "truncate", "sync", "unlink", "make folder"] as const;
  const eio = { kinds, error: "EIO" } as const;
  const full = { kinds: ["write"], error: "ENOSPC", isHalved: true } as const;
  const once = { seed, isLasting: false, isKilled: true };
  const trials = [
    inject({ ...once, scene: "first start", failure: eio, nth: 21 }),
    inject({ ...once, scene: "start with a WAL", failure: eio, nth: 1, isLasting: true }),
    inject({ ...once, scene: "load", failure: eio, nth: 41, isLasting: true, isKilled: false }),
    inject({ ...once, scene: "load", failure: full, nth: 61 }),
  ];
  return joinTrials(await Promise.all(trials));
});

const importEnds: readonly [Front, End][] = [
  ["command line", "a stop"],
  ["console", "a stop, and its connection closes"],
  ["command line", "a stop, and the service is killed and comes back"],
  ["console", "two stops, and the service stays away"],
  ["command line", "a closed connection"],
];
test.each(importEnds)("the %s says what is stored after %s, and can go on", async (front, end) => {
  expect((await endImport(front, end, seed)).faults).toEqual([]);
});
test.skipIf(isNotInterposable)("so does an import that a full disk ends", async () => {
  for (const front of ["command line", "console"] as const) {
    expect((await endImport(front, "a full disk", seed)).faults).toEqual([]);
  }
});

form("an update does what it says, and loses nothing that others change", false, async () => {
  await using service = await serveHere();
  const trials: Trial[] = [];
  for (let each = seed; each < seed + 20; each++) trials.push(await updateGarden(service, each));
  return joinTrials(trials);
});

form("histories are linearizable, even if instances are killed or cut off", false, async () => {
  const deployments = await startDeployments();
  // Each deployment, both engines with a kill (7 and 14), and a loss of the connections (3).
  const seeds = [1, 2, 3, 4, 7, 14];
  const trials = await Promise.all(seeds.map((each) => runHistory(deployments, each)));
  const { faults, figures } = joinTrials(trials);
  const { operations = 0, unknown = 0, ...others } = figures;
  // Most outcomes must be known for the check to mean something.
  const vague = unknown < operations / 10 ? [] : [`${unknown} of ${operations} are unknown`];
  const miscounted = await stopAll(deployments);
  return { faults: [...faults, ...vague, ...miscounted], figures: { operations, ...others } };
});

form("a consumer sees every event once and in order, if it is cut off", false, async () => {
  const { faults, figures } = await followBoth(8, seed);
  return { faults, figures: { events: figures.events ?? 0 } };
});

form("under a steady load no response leaves much behind", skipsOutsideLinux(), async () => {
  const { responses, refused, faults, heapBytesPerResponse } = await soak(shortRun);
  // Other tests keep the machine busy, so a few may be.
  if (refused > responses / 200) faults.push(`${refused} of ${responses} requests were refused`);
  if (heapBytesPerResponse >= shortRun.heapBytesPerResponseMax) faults.push("the heap grew");
  return { faults, figures: { responses } };
});

const hasNoHaproxy = skipsUnless(hasHaproxy, "not installed: haproxy");
form(
  "writes hold, and resume, if PostgreSQL's primary is killed or frozen",
  hasNoHaproxy,
  async () => {
    // Few clients, since other tests run at the same time.
    const trial = await FailoverTrial.start(4);
    try {
      const killed = await trial.run("killed", seed);
      await trial.replaceStandby();
      return joinTrials([killed, await trial.run("frozen", seed + 1)]);
    } finally {
      await trial.stop();
    }
  },
);

const hasNoPooler = hasNoHaproxy || skipsWithoutPooler();
form(
  "instances restart, and PostgreSQL, and tokens change: nothing is lost",
  hasNoPooler,
  async () => {
    const size = { instances: 3, gardens: 40, clients: 6, loadMs: 2_000, measuredMs: 4_000 };
    const { faults, figures } = await runFleet(size);
    const { requests = 0, "tokens created": tokens = 0, "confirmed writes": writes = 0 } = figures;
    return { faults, figures: { requests, tokens, writes } };
  },
);
