/**
 * The proofs in short: a few trials of each, which find nothing. Three that `npm run prove` lists
 * aren't here. `hostile` measures how long a quiet user waits, and other tests would be measured,
 * too; hostile/battery.test.ts has what hostile clients send. `upgrade` needs a checkout of 3.0.
 * `self-tests` runs these proofs on builds that are broken on purpose.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
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
import { live, type Moment } from "./kills/prove.ts";
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
const hasNoHaproxy = skipsUnless(hasHaproxy, "not installed: haproxy");
const hasNoPooler = hasNoHaproxy || skipsWithoutPooler();

/** A trial found nothing wrong, and it looked: none of its figures is zero. */
function expectNoFaults({ faults, figures }: Trial): void {
  expect(faults).toEqual([]);
  expect(Object.entries(figures).filter(([, value]) => value === 0)).toEqual([]);
}

describe("kills", () => {
  test("every confirmed write is there, whenever the service is killed", async () => {
    const ends: Moment[] = ["load", "first write", "start", "stopping"];

    expectNoFaults(await live({ seed, ends, threads: 2, isSecure: false }));
  });

  test("a stop cuts no response short over TLS", async () => {
    expectNoFaults(await live({ seed, ends: ["stop"], threads: 1, isSecure: true }));
  });
});

describe("power-cuts", () => {
  test.skipIf(isNotInterposable)("after a power cut, every confirmed write is there", async () => {
    using changed = checkpointOften(20);

    expectNoFaults(await cutRecording({ seed, writes: 120, program: changed.program }, 10));
  });

  test.skipIf(isNotInterposable).each(["backup", "restore"] as const)(
    "a power cut during a %s leaves no half a file",
    async (command) => {
      expect(await cutPower(command)).toEqual([]);
    },
  );
});

// Side by side, because each waits for its service.
describe.concurrent("faults", () => {
  const ioError = {
    kinds: ["open", "write", "truncate", "sync", "unlink", "make folder"],
    error: "EIO",
  } as const;

  test.skipIf(isNotInterposable)("an I/O error in a first start breaks no promise", async () => {
    expectNoFaults(
      await inject({
        seed,
        scene: "first start",
        failure: ioError,
        nth: 21,
        isLasting: false,
        isKilled: true,
      }),
    );
  });

  test.skipIf(isNotInterposable)("I/O errors in a start with a WAL break no promise", async () => {
    expectNoFaults(
      await inject({
        seed,
        scene: "start with a WAL",
        failure: ioError,
        nth: 1,
        isLasting: true,
        isKilled: true,
      }),
    );
  });

  test.skipIf(isNotInterposable)("I/O errors under load break no promise", async () => {
    expectNoFaults(
      await inject({
        seed,
        scene: "load",
        failure: ioError,
        nth: 41,
        isLasting: true,
        isKilled: false,
      }),
    );
  });

  test.skipIf(isNotInterposable)("half a write on a full disk breaks no promise", async () => {
    expectNoFaults(
      await inject({
        seed,
        scene: "load",
        failure: { kinds: ["write"], error: "ENOSPC", isHalved: true },
        nth: 61,
        isLasting: false,
        isKilled: true,
      }),
    );
  });
});

describe("imports", () => {
  const imports: readonly { front: Front; end: End }[] = [
    { front: "command line", end: "a stop" },
    { front: "console", end: "a stop, and its connection closes" },
    { front: "command line", end: "a stop, and the service is killed and comes back" },
    { front: "console", end: "two stops, and the service stays away" },
    { front: "command line", end: "a closed connection" },
  ];

  test.each(imports)(
    "the $front says what is stored after $end, and can go on",
    async ({ front, end }) => {
      expect((await endImport(front, end, seed)).faults).toEqual([]);
    },
  );

  test.skipIf(isNotInterposable).each(["command line", "console"] as const)(
    "the %s says what is stored after a full disk, and can go on",
    async (front) => {
      expect((await endImport(front, "a full disk", seed)).faults).toEqual([]);
    },
  );
});

test("updates: an update does what it says, and loses nothing that others change", async () => {
  await using service = await serveHere();
  const trials: Trial[] = [];
  for (let each = seed; each < seed + 20; each++) trials.push(await updateGarden(service, each));

  expectNoFaults(joinTrials(trials));
});

test("histories: they are linearizable, even if instances are killed or cut off", async () => {
  const deployments = await startDeployments();

  // Each deployment, both engines with a kill (7 and 14), and a loss of the connections (3).
  const seeds = [1, 2, 3, 4, 7, 14];
  const trials = await Promise.all(seeds.map((each) => runHistory(deployments, each)));
  const miscounted = await stopAll(deployments);

  const { faults, figures } = joinTrials(trials);
  // All may be known, so this figure alone may be zero.
  const { operations = 0, unknown = 0, ...others } = figures;
  expectNoFaults({ faults, figures: { operations, ...others } });
  // Most outcomes must be known for the check to mean something.
  expect(unknown).toBeLessThan(operations / 10);
  expect(miscounted).toEqual([]);
});

describe("listeners", () => {
  test("a consumer sees every event once and in order, even if it is cut off", async () => {
    const { faults, figures } = await followBoth(8, seed);

    expect(faults).toEqual([]);
    expect(figures.events).toBeGreaterThan(0);
  });

  test("a forwarder that is killed delivers every event, in order", async () => {
    expectNoFaults(await forwardUnderKills(500, 5, seed));
  });
});

test.skipIf(skipsOutsideLinux())(
  "soak: under a steady load no response leaves much behind",
  async () => {
    const { responses, refused, faults, heapBytesPerResponse } = await soak(shortRun);

    expect(faults).toEqual([]);
    expect(responses).toBeGreaterThan(0);
    // Other tests keep the machine busy, so a few may be.
    expect(refused).toBeLessThanOrEqual(responses / 200);
    expect(heapBytesPerResponse).toBeLessThan(shortRun.heapBytesPerResponseMax);
  },
);

test.skipIf(hasNoHaproxy)(
  "failover: writes hold, and resume, if PostgreSQL's primary is killed or frozen",
  async () => {
    // Few clients, since other tests run at the same time.
    const trial = await FailoverTrial.start(4);
    try {
      const killed = await trial.run("killed", seed);
      await trial.replaceStandby();
      const frozen = await trial.run("frozen", seed + 1);

      expectNoFaults(joinTrials([killed, frozen]));
    } finally {
      await trial.stop();
    }
  },
);

test.skipIf(hasNoPooler)(
  "fleet: instances restart, and PostgreSQL, and tokens change: nothing is lost",
  async () => {
    const { faults, figures } = await runFleet({
      instances: 3,
      gardens: 40,
      clients: 6,
      loadMs: 2_000,
      measuredMs: 4_000,
    });

    expect(faults).toEqual([]);
    expect(figures.requests).toBeGreaterThan(0);
    expect(figures["tokens created"]).toBeGreaterThan(0);
    expect(figures["confirmed writes"]).toBeGreaterThan(0);
  },
);
