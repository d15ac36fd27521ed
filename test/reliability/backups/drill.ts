/**
 * A backup is taken under load, the store is lost, and a service goes on from the restored backup,
 * on the same engine or the other one. Reports broken promises.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDice, spread } from "../../dice.ts";
import {
  type RunningService,
  runProgram,
  startService,
  waitFor,
} from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { auditStore } from "../audited-store.ts";
import { Ledger, type ListedPlant } from "../ledger.ts";
import { checkNextId, listPlants, repeat } from "../plant-client.ts";
import type { Trial } from "../proof.ts";
import { Workload } from "../workload.ts";

export type Engine = "SQLite" | "PostgreSQL";

export const losses = ["all files", "all but the WAL", "overwritten"] as const;
export type Loss = (typeof losses)[number];

export interface Case {
  readonly from: Engine;
  readonly to: Engine;
  readonly loss: Loss;
}

const clientsCount = 8;
/** Keyed requests that are sent again in a drill. */
const replaysMax = 40;

export async function drill(seed: number, { from, to, loss }: Case): Promise<Trial> {
  const dice = makeDice(spread(seed));
  await using store = await LoadedStore.start(from, seed);
  const { ledger, token } = store;
  const backup = join(store.folder, "plants.backup");
  await store.grow(30 + dice(90));
  const begun = ledger.moment;
  const taken = await runProgram(["backup", backup], { PLANTSTORE_DATABASE: store.address });
  const ended = ledger.moment;
  await store.grow(dice(20));
  await store.lose(loss);

  const database = to === "PostgreSQL" ? await makeDatabase() : undefined;
  const isInPlace = from === "SQLite" && to === "SQLite";
  const address = database?.url ?? (isInPlace ? store.address : join(store.folder, "restored.db"));
  const flags = isInPlace && loss === "overwritten" ? ["--force"] : [];
  const restored = await runProgram(["restore", backup, ...flags], {
    PLANTSTORE_DATABASE: address,
  });
  for (const { exitCode, errors } of [taken, restored]) {
    if (exitCode !== 0) return { faults: [`${exitCode}: ${errors}`], figures: {} };
  }
  const service = await startService({ database: address });
  try {
    const plants = await listPlants(service, token);
    const ids = plants.map(({ id }) => BigInt(id));
    const faults = [
      ...ledger.faults,
      ...ledger.auditMoment(plants, begun, ended),
      ...(await replay(service, token, ledger, plants)),
      ...(await checkNextId(service, token, ids.at(-1) ?? 0n)),
      ...(await auditStore(address)),
    ];
    return { faults, figures: { restored: plants.length, promises: ledger.moment } };
  } finally {
    await service[Symbol.asyncDispose]();
    await database?.drop();
  }
}

/** The key of every restored plant is restored, too. */
async function replay(
  service: RunningService,
  token: string,
  { keyed }: Ledger,
  plants: readonly ListedPlant[],
): Promise<string[]> {
  const idOf = new Map(plants.map(({ name, id }) => [name, id]));
  const restored = keyed.filter(({ name }) => idOf.has(name)).slice(-replaysMax);
  const repeated = restored.map((sent) => repeat(service, token, sent, idOf.get(sent.name)));
  return (await Promise.all(repeated)).flat();
}

/** A service under load, whose store can be lost. */
export class LoadedStore {
  readonly ledger = new Ledger();
  readonly address: string;
  readonly folder: string;
  readonly token: string;
  readonly #service: RunningService;
  readonly #workload: Workload;
  readonly #remove: () => Promise<void>;

  private constructor(
    service: RunningService,
    folder: string,
    seed: number,
    remove: () => Promise<void>,
  ) {
    this.#service = service;
    this.#remove = remove;
    this.address = service.database;
    this.folder = folder;
    this.token = service.token;
    // A backup must not make the service refuse anything.
    const call: RunningService["call"] = async (request, init) => {
      const response = await service.call(request, init);
      if (response.status >= 500) this.ledger.fault(`${request}: ${response.status}`);
      return response;
    };
    this.#workload = new Workload([{ ...service, call }], this.ledger, {
      clients: clientsCount,
      seed,
    });
  }

  static async start(engine: Engine, seed: number): Promise<LoadedStore> {
    const folder = makeTemporaryFolder();
    const database = engine === "PostgreSQL" ? await makeDatabase() : undefined;
    const address = database?.url ?? join(folder.path, "plants.db");
    const service = await startService({ database: address });
    return new LoadedStore(service, folder.path, seed, async () => {
      await service[Symbol.asyncDispose]();
      await database?.drop();
      folder[Symbol.dispose]();
    });
  }

  list(): Promise<ListedPlant[]> {
    return listPlants(this.#service, this.token);
  }

  /** Resolves when there are so many more plants. */
  async grow(plants: number): Promise<void> {
    const before = this.ledger.counts.present;
    await waitFor(() => (this.ledger.counts.present >= before + plants ? true : undefined));
  }

  /** Lets the clients finish, kills the service, and loses its files. */
  async lose(loss: Loss): Promise<void> {
    await this.#workload.stop();
    this.#service.signal("SIGKILL");
    await this.#service.exited;
    if (this.address.startsWith("postgres")) return;
    if (loss === "overwritten") return writeFileSync(this.address, "garbage".repeat(9_999));
    const lost = loss === "all files" ? ["", "-wal", "-shm"] : [""];
    for (const suffix of lost) rmSync(this.address + suffix);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#workload.stop();
    await this.#remove();
  }
}
