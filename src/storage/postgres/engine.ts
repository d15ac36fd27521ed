/** Storage in a PostgreSQL database, which any number of processes may serve at the same time. */

import { defaultConnectionLimits, type OpenOptions, type Storage } from "../storage.ts";
import type { ConnectionMode } from "./connect.ts";
import { createEventReader } from "./events.ts";
import { createGardenStorage } from "./gardens.ts";
import { createReader } from "./reader.ts";
import { createSchema, requireRights, requireStore } from "./schema.ts";
import { createTokenStorage } from "./tokens.ts";
import { TransactionRunner } from "./transaction.ts";
import { createWriter } from "./writer.ts";

/**
 * Fails with `unavailable`, in one line that names the database and no secret, if it cannot be
 * opened.
 */
export async function openPostgres(url: string, options: OpenOptions): Promise<Storage> {
  const { limits = defaultConnectionLimits } = options;
  if (options.share !== undefined) {
    const runner = TransactionRunner.create(url, limits, options.share as ConnectionMode);
    // So that the first request finds a connection. The database may be away just now.
    await runner.ping().catch(() => {});
    return createStorage(runner, options, options.share as ConnectionMode);
  }
  const { runner, mode } = await TransactionRunner.open(url, limits, async (client) => {
    if (options.mustExist) await requireStore(client);
    const isNew = await createSchema(client);
    await requireRights(client);
    if (!isNew) return;
    const { rows } = await client.query("SELECT current_schema() AS name");
    options.onNewStore?.(String(rows[0]?.name));
  });
  return createStorage(runner, options, mode);
}

/** Other threads open their own connections, by the same mode. */
function createStorage(
  runner: TransactionRunner,
  options: OpenOptions,
  mode: ConnectionMode,
): Storage {
  return {
    ...createReader(runner, options.onRead),
    ...createEventReader(runner),
    ...createWriter(runner, options),
    ...createTokenStorage(runner),
    ...createGardenStorage(runner),
    // It would take a query, which costs as much as reading.
    version: () => undefined,
    pool: () => runner.usage(),
    ping: () => runner.ping(),
    // The log and the disk belong to the server: only roles with more rights can see them.
    async measure() {
      const { rows } = await runner.query("SELECT pg_database_size(current_database()) AS bytes");
      return { database: Number(rows[0]?.bytes) };
    },
    share: () => ({ state: mode, transfer: [] }),
    close: () => runner.close(),
  };
}
