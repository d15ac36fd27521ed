/**
 * `npm run prove faults [injections] [seed]`: a file operation of the real program fails, or all
 * from that one on, in every way. It must confirm nothing that a crash could then lose, and go on
 * by itself when the disk does, or say why it can't and end.
 */
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { makeDice, spread } from "../../testing/dice.ts";
import { startService } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { auditGarden } from "../audit.ts";
import { type Failing, InterposedIo } from "../interposed-io/interposed-io.ts";
import { Ledger } from "../ledger.ts";
import { Disk, readImage } from "../power-cuts/disk.ts";
import { databasePath, examine } from "../power-cuts/examination.ts";
import { checkpointOften } from "../power-cuts/prove.ts";
import { prove, type Trial } from "../proof.ts";
import { Workload } from "../workload.ts";

/** From when on operations may fail. */
const scenes = ["first start", "start with a WAL", "load"] as const;

interface Injection {
  readonly seed: number;
  readonly scene: (typeof scenes)[number];
  readonly failure: Pick<Failing, "kinds" | "error" | "isHalved">;
  /** Which of the operations that can fail in this way. */
  readonly nth: number;
  /** All later operations fail as well, until the disk recovers. */
  readonly isLasting: boolean;
  /** Before the disk recovers. Otherwise it is stopped after that. */
  readonly isKilled: boolean;
  readonly program?: string;
}

const changes: Failing["kinds"] = ["open", "write", "truncate", "sync", "make folder"];
const failures: readonly Injection["failure"][] = [
  { kinds: [...changes, "read", "unlink", "rename"], error: "EIO" },
  { kinds: changes, error: "ENOSPC" },
  { kinds: ["write"], error: "ENOSPC", isHalved: true },
  { kinds: ["open"], error: "EMFILE" },
];
const nthMax = 150;
const loadMs = 300;

export async function inject(injection: Injection): Promise<Trial> {
  const { seed, scene, failure, nth, isLasting, isKilled, program } = injection;
  using folder = makeTemporaryFolder();
  const root = realpathSync(folder.path);
  using io = new InterposedIo(root);
  const database = join(root, databasePath);
  const args = ["--threads", "1"];
  const start = () => startService({ database, args, program, variables: io.variables });
  const ledger = new Ledger();
  const faults: string[] = [];

  let service = scene === "first start" ? undefined : await start();
  let token = service?.token;
  if (scene === "start with a WAL") await service?.[Symbol.asyncDispose]();
  const last = failure.isHalved ? nth + 1 : nth;
  io.fail({ ...failure, first: nth, ...(!isLasting && { last }) });
  if (scene !== "load") {
    service = await start().catch(({ message }: Error) => {
      if (!/^It ended with 1: plantstore: [^\n]+\.\n$/.test(message)) faults.push(message);
      return undefined;
    });
    token ??= service?.token;
  }
  if (service && token) {
    const load = new Workload([{ ...service, token }], ledger, {
      clients: 6,
      seed,
      bulkPlantsMax: 300,
    });
    await Bun.sleep(loadMs);
    if (isKilled) await load.stop(false);
    else {
      io.heal();
      const ended = service.exited.then(() => true);
      if (!(await Promise.race([ended, load.untilWritten()]))) {
        await load.stop();
        faults.push(...(await auditGarden(service, token, ledger)));
      }
    }
    service.signal(isKilled ? "SIGKILL" : "SIGTERM");
    const exitCode = await service.exited;
    const isExplained = exitCode === 1 && service.output().out.includes('"event":"broken down"');
    if (!isKilled && exitCode !== 0 && !isExplained) faults.push(`it ended with ${exitCode}`);
    await load.stop();
    await service[Symbol.asyncDispose]();
  }

  const gardens = token ? [{ token, entries: ledger.entries }] : [];
  const kept = await examine(readImage(root), gardens, () => 0);
  faults.push(...kept.map((fault) => `after a kill: ${fault}`));
  const disk = new Disk();
  for (const call of io.calls()) disk.follow(call);
  // The least that may be left, and two disks with more.
  for (const dice of [() => 0, makeDice(spread(seed)), makeDice(spread(seed + 1))]) {
    const left = await examine(disk.cut(dice), gardens, dice);
    faults.push(...left.map((fault) => `after a power cut: ${fault}`));
  }
  const where = `${scene}, ${failure.error}, call ${nth}${isLasting ? " and on" : ""}`;
  return {
    faults: faults.map((fault) => `${where}: ${fault}`),
    figures: { "calls that failed": io.failed },
  };
}

if (import.meta.main) {
  using changed = checkpointOften(20);
  await prove({
    trials: "injections",
    count: 2_000,
    run(seed) {
      const dice = makeDice(spread(seed));
      const failure = failures[dice(failures.length)] as Injection["failure"];
      // SQLite goes on if it can't open a folder to sync it, so a first start needs descriptors.
      const scene = failure.error === "EMFILE" ? "load" : (scenes[dice(3)] ?? "load");
      const [isLasting, isKilled] = [dice(2) === 0, dice(2) === 0];
      const nth = 1 + dice(nthMax);
      const { program } = changed;
      return inject({ seed, scene, failure, nth, isLasting, isKilled, program });
    },
  });
}
