/**
 * Applies a group of writes to PostgreSQL in one transaction. Whoever creates plants locks the row of
 * their garden first, so instances take turns in a garden; constraints stop what might slip through.
 */
import type { ClientBase, QueryResult } from "pg";
import { assignedIdMax, type PlantId } from "../../domain/plant.ts";
import type { CreateWrite, DeleteWrite, Outcome, TokenUse, Write } from "../../domain/storage.ts";
import type { Attempts } from "./attempts.ts";
import { type Decision, decide, type KeptKey, pair } from "./decision.ts";
import { hasState } from "./failure.ts";

/** Few enough that writers who wait behind it do not notice. */
const forgottenKeysMax = 1_000;

interface PlantPlace {
  readonly garden: string;
  readonly id: PlantId;
}

export interface Writer {
  apply(writes: readonly Write[]): Promise<readonly Outcome[]>;
  forgetKeys(nowMs: number): Promise<boolean>;
  noteTokenUses(uses: readonly TokenUse[]): Promise<void>;
}

export function createWriter(attempts: Attempts): Writer {
  return {
    async apply(writes) {
      if (writes.every(isDelete)) return deleteAll(attempts, writes);
      const outcomes = writes.every(isPlainCreate) && (await createAll(attempts, writes));
      if (outcomes) return outcomes;
      return attempts.transact(
        (client, commit) => applyInOrder(client, writes, commit),
        [uniqueViolation],
      );
    },

    async forgetKeys(nowMs) {
      // The expiry is asked for twice, because a key may be used anew while its row is waited for.
      const { rowCount } = await attempts.write(
        `DELETE FROM idempotency_keys WHERE expires_at_ms <= $1 AND (garden, key) IN (
           SELECT garden, key FROM idempotency_keys
             WHERE expires_at_ms <= $1 ORDER BY expires_at_ms LIMIT ${forgottenKeysMax})`,
        [nowMs],
      );
      return rowCount === forgottenKeysMax;
    },

    async noteTokenUses(uses) {
      await attempts.write(
        `UPDATE tokens SET last_used_at_ms = used.at_ms
           FROM unnest($1::text[], $2::bigint[]) AS used (id, at_ms)
           WHERE tokens.id = used.id AND coalesce(tokens.last_used_at_ms, 0) < used.at_ms`,
        [uses.map(({ id }) => id), uses.map(({ usedAtMs }) => usedAtMs)],
      );
    },
  };
}

const uniqueViolation = "23505";
const checkViolation = "23514";

function isDelete(write: Write): write is DeleteWrite {
  return write.kind === "delete";
}

function isPlainCreate(write: Write): write is CreateWrite {
  return write.kind === "create" && write.id === undefined && write.idempotency === undefined;
}

/** Of equal places the first finds the plant, and the others find it gone. */
async function deleteAll(attempts: Attempts, places: readonly PlantPlace[]): Promise<Outcome[]> {
  const { rows } = await attempts.write(deletion, placesOf(places));
  const found = new Set(rows.map(({ garden, id }) => pair(garden, id)));
  return places.map(({ garden, id }) => ({
    kind: found.delete(pair(garden, id)) ? "deleted" : "missing",
  }));
}

/**
 * The most common group in one statement, which is one way there and back: the counters move by the
 * number of plants, and the plants get the ids up to there. Absent when such an id is taken or none is
 * left: then the constraints have refused all of it.
 */
async function createAll(
  attempts: Attempts,
  writes: readonly CreateWrite[],
): Promise<Outcome[] | undefined> {
  const counts = new Map<string, number>();
  const positions = writes.map(({ garden }) => {
    const position = (counts.get(garden) ?? 0) + 1;
    counts.set(garden, position);
    return position;
  });
  const gardens = sorted(counts.keys());
  let result: QueryResult<{ garden: string; first_id: PlantId }>;
  try {
    result = await attempts.write(
      `WITH counted AS (
         INSERT INTO gardens (garden, last_id)
           SELECT garden, plants FROM unnest($1::text[], $2::bigint[]) AS wanted (garden, plants)
           ON CONFLICT (garden) DO UPDATE SET last_id = gardens.last_id + excluded.last_id
           RETURNING garden, last_id),
       started AS (
         SELECT garden, last_id - plants AS first_id
           FROM counted JOIN unnest($1::text[], $2::bigint[]) AS wanted (garden, plants) USING (garden)),
       stored AS (
         INSERT INTO plants (garden, id, name, tag)
           SELECT garden, first_id + position, name, tag
             FROM unnest($3::text[], $4::bigint[], $5::text[], $6::text[])
               AS plant (garden, position, name, tag)
             JOIN started USING (garden))
       SELECT garden, first_id FROM started`,
      [
        gardens,
        gardens.map((garden) => counts.get(garden)),
        writes.map(({ garden }) => garden),
        positions,
        writes.map(({ name }) => name),
        writes.map(({ tag }) => tag),
      ],
    );
  } catch (error) {
    if (hasState(error, uniqueViolation, checkViolation)) return undefined;
    throw error;
  }
  const firstIds = new Map(result.rows.map(({ garden, first_id }) => [garden, first_id]));
  return writes.map(({ garden }, index) => {
    const id = (firstIds.get(garden) ?? 0n) + BigInt(positions[index] ?? 0);
    return { kind: "created", id, replayed: false };
  });
}

/** Any group: what it depends on is locked and read in one go, then what was decided is stored in one. */
async function applyInOrder(
  client: ClientBase,
  writes: readonly Write[],
  commit: () => void,
): Promise<readonly Outcome[]> {
  const creates = writes.filter((write) => write.kind === "create");
  const chosen = writes.flatMap(({ kind, garden, id }) =>
    kind === "create" && id !== undefined ? [{ garden, id }] : [],
  );
  const keyed = creates.flatMap(({ garden, idempotency }) =>
    idempotency ? [{ garden, key: idempotency.key }] : [],
  );
  const doomed = writes.filter((write) => write.kind === "delete");
  try {
    const [, counters, gone, existing, keys] = await inOneGo([
      client.query("BEGIN ISOLATION LEVEL READ COMMITTED"),
      client.query(lock, [sorted(new Set(creates.map(({ garden }) => garden)))]),
      client.query(deletion, placesOf(doomed)),
      client.query(lookUp, placesOf(chosen)),
      client.query(lookUpKeys, [keyed.map(({ garden }) => garden), keyed.map(({ key }) => key)]),
    ]);
    const decision = await decide(writes, {
      lastIds: new Map(counters?.rows.map(({ garden, last_id }) => [garden, last_id])),
      plants: [...(gone?.rows ?? []), ...(existing?.rows ?? [])],
      keys: keys?.rows.map(toKey) ?? [],
      findFreeId: (garden, from) => findFreeId(client, garden, from),
    });
    commit();
    await store(client, decision);
    return decision.outcomes;
  } catch (error) {
    await client.query("ROLLBACK").catch(() => {});
    throw error;
  }
}

const lock = `
  INSERT INTO gardens (garden, last_id) SELECT garden, 0 FROM unnest($1::text[]) AS touched (garden)
    ON CONFLICT (garden) DO UPDATE SET last_id = gardens.last_id RETURNING garden, last_id`;

const deletion = `
  DELETE FROM plants WHERE (garden, id) IN
    (SELECT garden, id FROM unnest($1::text[], $2::bigint[]) AS doomed (garden, id))
    RETURNING garden, id`;

const lookUp = `
  SELECT garden, id FROM plants
    JOIN unnest($1::text[], $2::bigint[]) AS chosen (garden, id) USING (garden, id)`;

const lookUpKeys = `
  SELECT garden, key, request, plant_id, expires_at_ms FROM idempotency_keys
    JOIN unnest($1::text[], $2::text[]) AS sent (garden, key) USING (garden, key)`;

function toKey(row: Record<string, unknown>): KeptKey {
  const { garden, key, request } = row as { garden: string; key: string; request: string };
  return {
    garden,
    key,
    request,
    plantId: row.plant_id as PlantId,
    expiresAtMs: Number(row.expires_at_ms),
  };
}

async function findFreeId(client: ClientBase, garden: string, from: PlantId): Promise<PlantId> {
  const taken = await client.query(lookUp, placesOf([{ garden, id: from }]));
  if (taken.rows.length === 0) return from;
  const { rows } = await client.query(
    `SELECT id + 1 AS id FROM plants AS taken
       WHERE garden = $1 AND id >= $2 AND id <= $3 AND NOT EXISTS
         (SELECT 1 FROM plants WHERE garden = $1 AND id = taken.id + 1)
       ORDER BY taken.id LIMIT 1`,
    [garden, from, assignedIdMax],
  );
  return rows[0].id;
}

/** A COMMIT after a failed statement is answered as ROLLBACK, without an error of its own. */
async function store(client: ClientBase, { plants, keys, lastIds }: Decision): Promise<void> {
  const results = await inOneGo([
    client.query(
      `INSERT INTO plants (garden, id, name, tag)
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[])`,
      [
        plants.map(({ garden }) => garden),
        plants.map(({ id }) => id),
        plants.map(({ name }) => name),
        plants.map(({ tag }) => tag),
      ],
    ),
    client.query(
      `UPDATE gardens SET last_id = moved.last_id
         FROM unnest($1::text[], $2::bigint[]) AS moved (garden, last_id)
         WHERE gardens.garden = moved.garden`,
      [[...lastIds.keys()], [...lastIds.values()]],
    ),
    client.query(
      `INSERT INTO idempotency_keys (garden, key, request, plant_id, expires_at_ms)
         SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
         ON CONFLICT (garden, key) DO UPDATE SET request = excluded.request,
           plant_id = excluded.plant_id, expires_at_ms = excluded.expires_at_ms`,
      [
        keys.map(({ garden }) => garden),
        keys.map(({ key }) => key),
        keys.map(({ request }) => request),
        keys.map(({ plantId }) => plantId),
        keys.map(({ expiresAtMs }) => expiresAtMs),
      ],
    ),
    client.query("COMMIT"),
  ]);
  const { command } = results.at(-1) as QueryResult;
  if (command !== "COMMIT") throw new Error(`A commit was answered as ${command}.`);
}

/** Waits for all, so that the connection is at rest afterwards; fails with what failed first. */
async function inOneGo(queries: readonly Promise<QueryResult>[]): Promise<QueryResult[]> {
  const settled = await Promise.allSettled(queries);
  return settled.map((each) => {
    if (each.status === "rejected") throw each.reason;
    return each.value;
  });
}

function placesOf(places: readonly PlantPlace[]): [gardens: string[], ids: PlantId[]] {
  return [places.map(({ garden }) => garden), places.map(({ id }) => id)];
}

/** Locks are taken in one order by all, so that nobody waits in a circle. */
function sorted(gardens: Iterable<string>): string[] {
  return [...gardens].sort();
}
