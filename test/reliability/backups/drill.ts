/**
 * A backup is taken under load, the store is lost, and a service goes on from what was restored, on
 * the same engine or the other one. Tells which promises were broken.
 */
import { join } from "node:path";
import { makeDice, spread } from "../../dice.ts";
import { type RunningService, runProgram, startService } from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";
import { type ListedPlant, readList } from "../ledger.ts";
import type { Trial } from "../proof.ts";
import { type Engine, LoadedStore, type Loss } from "./loaded-store.ts";

/** Requests that are sent again in a drill. */
const replaysMax = 40;

export interface Case {
  readonly from: Engine;
  readonly to: Engine;
  readonly loss: Loss;
}

export async function drill(seed: number, { from, to, loss }: Case): Promise<Trial> {
  const dice = makeDice(spread(seed));
  await using store = await LoadedStore.start(from, seed);
  const { chronicle, token } = store;
  const backup = join(store.folder, "plants.backup");
  await store.grow(30 + dice(90));
  const begun = chronicle.moment;
  const taken = await runProgram(["backup", backup], { PLANTSTORE_DATABASE: store.address });
  const ended = chronicle.moment;
  await store.grow(dice(20));
  await store.lose(loss);

  const database = to === "PostgreSQL" ? await makeDatabase() : undefined;
  const isInPlace = from === "SQLite" && to === "SQLite";
  const address = database?.url ?? (isInPlace ? store.address : join(store.folder, "restored.db"));
  const flags = isInPlace && loss === "to garbage" ? ["--force"] : [];
  const restored = await runProgram(["restore", backup, ...flags], {
    PLANTSTORE_DATABASE: address,
  });
  for (const { exitCode, errors } of [taken, restored]) {
    if (exitCode !== 0) return { faults: [`${exitCode}: ${errors}`], figures: {} };
  }
  const service = await startService({ database: address });
  try {
    const plants = await list(service, token);
    const faults = [
      ...chronicle.faults,
      ...chronicle.auditMoment(plants, begun, ended),
      ...(await replay(service, token, store, plants)),
      ...(await continueIds(service, token, plants)),
    ];
    const figures = { restored: plants.length, promises: chronicle.moment };
    return { faults, figures };
  } finally {
    await service[Symbol.asyncDispose]();
    await database?.drop();
  }
}

async function list(service: RunningService, token: string): Promise<ListedPlant[]> {
  const response = await service.call("GET /plants?fields=id,name,tag", { token });
  return readList(await response.text());
}

/** A key is kept with its plant, or neither is. */
async function replay(
  service: RunningService,
  token: string,
  { keyed }: LoadedStore,
  plants: readonly ListedPlant[],
): Promise<string[]> {
  const faults: string[] = [];
  for (const { id, name } of plants.filter((plant) => keyed.has(plant.name)).slice(-replaysMax)) {
    const { status, headers } = await service.call("POST /plants", {
      token,
      body: keyed.get(name) ?? "",
      headers: { "Idempotency-Key": name },
    });
    const isReplayed = headers.get("idempotency-replayed") === "true";
    if (status !== 201 || !isReplayed || headers.get("location") !== `/plants/${id}`) {
      faults.push(`the key of ${name} is not known: ${status}`);
    }
  }
  return faults;
}

async function continueIds(
  service: RunningService,
  token: string,
  plants: readonly ListedPlant[],
): Promise<string[]> {
  const highest = plants.reduce((max, { id }) => (BigInt(id) > max ? BigInt(id) : max), 0n);
  const response = await service.call("POST /plants", { token, body: '{"name":"next"}' });
  const id = BigInt(response.headers.get("location")?.split("/").at(-1) ?? 0);
  return id > highest ? [] : [`the id ${id} was assigned behind ${highest}`];
}
