/** Storage in a PostgreSQL database, which any number of processes may serve at the same time. */
import { PlantStoreError } from "../../domain/errors.ts";
import type { Plant, PlantId } from "../../domain/plant.ts";
import {
  defaultConnectionLimits,
  type OpenOptions,
  type PlantReader,
  type Storage,
} from "../../domain/storage.ts";
import { retold } from "../../domain/transfer.ts";
import { createTranslated } from "../translation.ts";
import { maskAddress, parseAddress } from "./address.ts";
import { Attempts } from "./attempts.ts";
import { explain } from "./connection.ts";
import { translate } from "./failure.ts";
import { migrate, readSchema, requireRights } from "./migrate.ts";
import { Primary } from "./primary.ts";
import { createTokenStorage } from "./tokens.ts";
import { createTransfer } from "./transfer.ts";
import { createWriter } from "./writer.ts";

/** How long the start may wait for migrations, its own or another process's. */
const migrationMs = 60 * 60 * 1000;

const translated = createTranslated(translate);

/** Fails with `unavailable`, in one line that names the database and no secret, if it cannot be opened. */
export async function openPostgres(url: string, options: OpenOptions): Promise<Storage> {
  const address = parseAddress(url);
  const primary = new Primary(address, options.limits ?? defaultConnectionLimits);
  if (options.isOpenElsewhere) {
    await primary.settle();
    return createStorage(primary);
  }
  try {
    await primary.open();
    await primary.use(async (client) => {
      if (options.mustExist && (await readSchema(client)) === 0) {
        throw new PlantStoreError("unavailable", "it holds no plant store yet");
      }
      await migrate(client);
      await requireRights(client);
    }, performance.now() + migrationMs);
    return createStorage(primary);
  } catch (error) {
    await primary.close();
    const reason = explain(error, address);
    throw new PlantStoreError("unavailable", `Cannot open ${maskAddress(url)}: ${reason}.`, {
      cause: error,
    });
  }
}

function createStorage(primary: Primary): Storage {
  const attempts = new Attempts(primary);
  const { list, seek } = createReader(attempts);
  const tokens = createTokenStorage(attempts);
  const writer = createWriter(attempts);
  return {
    list: translated(list),
    seek: translated(seek),
    // To tell would take a query, which is as dear as reading.
    version: () => undefined,
    apply: translated(writer.apply),
    forgetKeys: translated(writer.forgetKeys),
    noteTokenUses: translated(writer.noteTokenUses),
    findToken: translated(tokens.findToken),
    listTokens: translated(tokens.listTokens),
    addToken: translated(tokens.addToken),
    revokeToken: translated(tokens.revokeToken),
    countTokenChanges: translated(tokens.countTokenChanges),
    transfer: (nowMs) => retold(createTransfer(attempts, nowMs), translate),
    ping: translated(() => primary.ping()),
    // Another thread makes connections of its own.
    share: () => undefined,
    close: () => primary.close(),
  };
}

function createReader(attempts: Attempts): PlantReader {
  return {
    async list(garden, after, count) {
      const { rows } =
        after === undefined
          ? await attempts.read(
              "SELECT id, name, tag FROM plants WHERE garden = $1 ORDER BY id LIMIT $2",
              [garden, count],
            )
          : await attempts.read(
              `SELECT id, name, tag FROM plants WHERE garden = $1 AND id > $2
                 ORDER BY id LIMIT $3`,
              [garden, after, count],
            );
      return rows as Plant[];
    },
    async seek(garden, after, count) {
      const { rows } =
        after === undefined
          ? await attempts.read(
              `SELECT max(id) AS id FROM
                 (SELECT id FROM plants WHERE garden = $1 ORDER BY id LIMIT $2) AS sought`,
              [garden, count],
            )
          : await attempts.read(
              `SELECT max(id) AS id FROM
                 (SELECT id FROM plants WHERE garden = $1 AND id > $2 ORDER BY id LIMIT $3) AS sought`,
              [garden, after, count],
            );
      return (rows[0] as { id: PlantId | null }).id ?? undefined;
    },
  };
}
