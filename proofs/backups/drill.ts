/**
 * A backup is taken under load, the store is lost, and a service goes on from the restored backup,
 * on the same engine or the other one. Reports broken promises.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDice, spread } from "../../test/dice.ts";
import {
  type RunningService,
  runProgram,
  startService,
  waitFor,
} from "../../test/end-to-end/running-service.ts";
import { auditStore, type Engine, makePlace } from "../audited-store.ts";
import { auditLog } from "../event-log.ts";
import { Ledger } from "../ledger.ts";
import { checkNextId, listPlants, repeat } from "../plant-client.ts";
import type { Trial } from "../proof.ts";
import { Workload } from "../workload.ts";

export const losses = ["all files", "all but the WAL", "overwritten"] as const;
export type Loss = (typeof losses)[number];

export interface Case {
  readonly from: Engine;
  readonly to: Engine;
  readonly loss: Loss;
}

const clients = 8;
/** Keyed requests that are sent again in a drill. */
const replaysMax = 40;

export async function drill(
  seed: number,
  { from, to, loss }: Case,
  program?: string,
): Promise<Trial> {
  const dice = makeDice(spread(seed));
  await using place = await makePlace(from);
  await using service = await startService({ database: place.database });
  const { token } = service;
  const ledger = new Ledger();
  // A backup must not make the service refuse anything.
  const call: RunningService["call"] = async (request, init) => {
    const response = await service.call(request, init);
    if (response.status >= 500) ledger.fault(`${request}: ${response.status}`);
    return response;
  };
  const workload = new Workload([{ token, call }], ledger, { clients, seed });
  const grow = (plants: number) => {
    const enough = ledger.counts.present + plants;
    return waitFor(() => ledger.counts.present >= enough || undefined);
  };
  await grow(30 + dice(90));
  const begun = ledger.moment;
  const backup = join(place.folder, "plants.backup");
  const variables = { PLANTSTORE_DATABASE: place.database };
  const taken = await runProgram(["backup", backup], variables, program);
  const ended = ledger.moment;
  await grow(dice(20));
  await workload.stop();
  service.signal("SIGKILL");
  await service.exited;
  if (from === "sqlite") lose(place.database, loss);

  const isInPlace = from === "sqlite" && to === "sqlite";
  await using other = isInPlace ? undefined : await makePlace(to);
  const { database } = other ?? place;
  const flags = isInPlace && loss === "overwritten" ? ["--force"] : [];
  const restored = await runProgram(["restore", backup, ...flags], {
    PLANTSTORE_DATABASE: database,
  });
  for (const { exitCode, errors } of [taken, restored]) {
    if (exitCode !== 0) return { faults: [`${exitCode}: ${errors}`], figures: {} };
  }
  await using again = await startService({ database });
  const plants = await listPlants(again, token);
  // The key of every restored plant is restored, too.
  const idOf = new Map(plants.map(({ name, id }) => [name, id]));
  const keyed = ledger.keyed.filter(({ name }) => idOf.has(name)).slice(-replaysMax);
  const replays = keyed.map((sent) => repeat(again, token, sent, idOf.get(sent.name)));
  const faults = [
    ...ledger.faults,
    ...ledger.auditMoment(plants, begun, ended),
    ...(await auditLog(again, token, ledger, { from: begun, to: ended })),
    ...(await Promise.all(replays)).flat(),
    ...(await checkNextId(again, token, BigInt(plants.at(-1)?.id ?? 0))),
    ...(await auditStore(database)),
  ];
  return { faults, figures: { restored: plants.length, promises: ledger.moment } };
}

function lose(database: string, loss: Loss): void {
  if (loss === "overwritten") writeFileSync(database, "garbage".repeat(9_999));
  else rmSync(database);
  if (loss === "all files") for (const suffix of ["-wal", "-shm"]) rmSync(database + suffix);
}
