/**
 * Connects to a database at the start of a process, and says in one line why that cannot be done.
 */
import type { ClientBase } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { type ConnectionLimits, defaultConnectionLimits } from "../../domain/storage.ts";
import { maskAddress, parseAddress } from "./address.ts";
import { explain } from "./connection.ts";
import { Primary } from "./primary.ts";

/** How long the start may wait for migrations, its own or another process's. */
const preparationMs = 60 * 60 * 1000;

/**
 * `prepare` looks whether the database will do, and may change that. Fails with `unavailable`, in
 * one line that names the database and no secret.
 */
export async function openPrimary(
  url: string,
  limits: ConnectionLimits = defaultConnectionLimits,
  prepare: (client: ClientBase) => Promise<void>,
): Promise<Primary> {
  const address = parseAddress(url);
  const primary = new Primary(address, limits);
  try {
    await primary.open();
    const dueAtMs = performance.now() + preparationMs;
    await primary.use(
      async (client) => {
        await prepare(client);
        await primary.whereabouts.learn(client);
      },
      { dueAtMs },
    );
    return primary;
  } catch (error) {
    await primary.close();
    const reason = explain(error, address);
    throw new PlantStoreError("unavailable", `Cannot open ${maskAddress(url)}: ${reason}.`, {
      cause: error,
    });
  }
}
