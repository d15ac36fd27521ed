/**
 * A service under load, on either engine. Every answer goes into a chronicle, until the store is
 * lost.
 */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RunningService, startService, waitFor } from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";
import { makeTemporaryFolder } from "../../temporary-folder.ts";
import { Gardeners } from "../gardeners.ts";
import { Chronicle } from "./chronicle.ts";

export type Engine = "SQLite" | "PostgreSQL";

/**
 * `without a trace`: all its files are gone. `but for its log`: that is left. `to garbage`: as it
 * says.
 */
export const losses = ["without a trace", "but for its log", "to garbage"] as const;
export type Loss = (typeof losses)[number];

const gardenersCount = 8;

export class LoadedStore {
  readonly chronicle = new Chronicle();
  /** What was sent with an idempotency key, by the key, which is the plant's name. */
  readonly keyed = new Map<string, string>();
  readonly address: string;
  readonly folder: string;
  readonly token: string;
  readonly #service: RunningService;
  readonly #gardeners: Gardeners;
  readonly #tidy: () => Promise<void>;

  private constructor(
    service: RunningService,
    folder: string,
    seed: number,
    tidy: () => Promise<void>,
  ) {
    this.#service = service;
    this.#tidy = tidy;
    this.address = service.database;
    this.folder = folder;
    this.token = service.token;
    const instance = { service: this.#attended(), token: service.token };
    this.#gardeners = new Gardeners([instance], this.chronicle, gardenersCount, seed);
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

  /** Resolves when so many plants more are there than at first. */
  async grow(plants: number): Promise<void> {
    const before = this.chronicle.counts.there;
    await waitFor(() => (this.chronicle.counts.there >= before + plants ? true : undefined));
  }

  /** Every write before this is answered. The service is killed, and what it kept is lost. */
  async lose(loss: Loss): Promise<void> {
    await this.#gardeners.stop();
    this.#service.signal("SIGKILL");
    await this.#service.exited;
    if (this.address.startsWith("postgres")) return;
    if (loss === "to garbage") return writeFileSync(this.address, crypto.randomUUID().repeat(999));
    const lost = loss === "without a trace" ? ["", "-wal", "-shm"] : [""];
    for (const suffix of lost) rmSync(this.address + suffix);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gardeners.stop();
    await this.#tidy();
  }

  /** The service, but that keys are kept, and that no answer may be a failure. */
  #attended(): RunningService {
    const service = this.#service;
    return {
      ...service,
      call: async (request, init) => {
        const key = new Headers(init?.headers).get("idempotency-key");
        if (key !== null) this.keyed.set(key, String(init?.body));
        const response = await service.call(request, init);
        if (response.status >= 500) this.chronicle.fault(`${request}: ${response.status}`);
        return response;
      },
    };
  }
}
