/** What a case of the client is. All run under Bun, and some under Node, too. */
import assert from "node:assert/strict";
import { PlantStore, type PlantStoreOptions, PlantStoreProblem } from "../../client/plant-store.ts";
import { FaultyProxy } from "../../testing/faulty-proxy.ts";

interface ClientWorld {
  readonly url: string;
  /** Opens a garden that no other case uses. */
  readonly token: string;
}

type ClientCase = (world: ClientWorld & { readonly store: PlantStore }) => Promise<void>;

/** By their names, which go on after "the client". */
export type ClientCases = Readonly<Record<string, ClientCase>>;

/** A client of the service at `url`. */
export function openStore(world: ClientWorld, options: Partial<PlantStoreOptions> = {}) {
  return new PlantStore({ ...world, ...options });
}

export function runCase(run: ClientCase, world: ClientWorld): Promise<void> {
  return run({ ...world, store: openStore(world) });
}

/** `url` is the service's own address, and `store` is a client that goes through the proxy. */
interface ProxiedWorld extends ClientWorld {
  readonly store: PlantStore;
  readonly proxy: FaultyProxy;
}

/** A case whose client reaches the service through a proxy that breaks connections. */
export function proxied(
  run: (world: ProxiedWorld) => Promise<void>,
  options: Partial<PlantStoreOptions> = {},
): ClientCase {
  return async (world) => {
    const proxy = await FaultyProxy.open(world.url);
    const store = openStore(world, { ...options, url: proxy.url });
    try {
      await run({ ...world, store, proxy });
    } finally {
      proxy.close();
    }
  };
}

/** Node 20 has no `Array.fromAsync`. */
export async function collect<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const collected: Item[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

/** The error that it fails with, which is of that kind. */
export async function failure<Kind extends Error>(
  promise: Promise<unknown>,
  // biome-ignore lint/suspicious/noExplicitAny: any constructor of that kind of error.
  kind: abstract new (...args: any[]) => Kind,
): Promise<Kind> {
  const error = await promise.then(
    () => assert.fail("It did not fail."),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof kind, `It failed with ${error}`);
  return error;
}

/** The problem that it fails with: the service refused it, or something else responded. */
export function problemOf(call: Promise<unknown>): Promise<PlantStoreProblem> {
  return failure(call, PlantStoreProblem);
}
