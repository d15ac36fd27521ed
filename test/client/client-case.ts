/** What a case of the client is. All run under Bun, and some under Node, too. */
import assert from "node:assert/strict";
import { PlantStore, type PlantStoreOptions } from "../../src/client/plant-store.ts";

export interface ClientWorld {
  readonly url: string;
  /** Opens a garden that no other case uses. */
  readonly token: string;
}

export interface ClientCase {
  readonly name: string;
  readonly run: (world: ClientWorld) => Promise<void>;
}

export function openStore(world: ClientWorld, options: Partial<PlantStoreOptions> = {}) {
  return new PlantStore({ ...world, ...options });
}

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
