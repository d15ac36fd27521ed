/**
 * Measures on a real PostgreSQL what the simulation takes for granted: bytes of a plant, log of a
 * write, what a lock and a commit in two phases cost. Give it the address of an empty database
 * whose max_prepared_transactions is at least 8, as a superuser: bun
 * bench/shards/postgres-figures.ts postgres://…
 */
import { SQL } from "bun";
import { say } from "../output.ts";
import { renderTable } from "../report/text-table.ts";
import { createRandom } from "./random.ts";

const schema = "plantstore_figures";
const groupWrites = 48;
const seconds = 4;
const address = process.argv[2];
if (address === undefined) throw new Error("Give the address of an empty PostgreSQL database.");

const sql = new SQL(address, { max: 9 });
const random = createRandom(1);
await sql.unsafe(`
  DROP SCHEMA IF EXISTS ${schema} CASCADE;
  CREATE SCHEMA ${schema};
  CREATE TABLE ${schema}.plants (garden text, id bigint, name text NOT NULL, tag text NOT NULL,
    PRIMARY KEY (garden, id));
  CREATE TABLE ${schema}.gardens (garden text PRIMARY KEY, last_id bigint NOT NULL);
  CREATE INDEX ON ${schema}.plants (garden, tag, id);
  CREATE TABLE ${schema}.idempotency_hashes (garden text, key_hash bytea, request_hash bytea NOT NULL,
    plant_id bigint NOT NULL, expires_at_ms bigint NOT NULL, lines bytea,
    PRIMARY KEY (garden, key_hash));
  CREATE INDEX ON ${schema}.idempotency_hashes (expires_at_ms);`);
try {
  const [version] = await sql.unsafe("SELECT version()");
  say(`${version.version}\n`);
  say(`${await measureBytes()}\n`);
  say(`${await measureCommits()}\n`);
  say(await measureColdLog());
} finally {
  await sql.unsafe(`DROP SCHEMA ${schema} CASCADE`);
  await sql.close();
}

async function measureBytes(): Promise<string> {
  const plants = 300_000;
  const rows: string[][] = [];
  for (const [title, width, gardens] of [
    ["garden of 36 letters, 2,000 gardens", 36, 2_000],
    ["garden of 11 letters, 2,000 gardens", 11, 2_000],
    ["garden of 11 letters, one garden", 11, 1],
  ] as const) {
    await sql.unsafe(`TRUNCATE ${schema}.plants, ${schema}.gardens, ${schema}.idempotency_hashes`);
    const pick = () => `g${Math.floor(random() * gardens)}`.padEnd(width, "-");
    for (let written = 0; written < plants; written += groupWrites) {
      await commit(Array.from({ length: groupWrites }, pick), { withKeys: true });
    }
    const sizes = await Promise.all(["plants", "idempotency_hashes"].map((table) => sizeOf(table)));
    rows.push([title, ...sizes.flat().map((bytes) => (bytes / plants).toFixed(0))]);
  }
  return renderTable(["bytes", "plant", "its indexes", "key", "its indexes"], rows);
}

async function sizeOf(table: string): Promise<number[]> {
  const [size] = await sql.unsafe(`SELECT pg_relation_size('${schema}.${table}') AS heap,
    pg_indexes_size('${schema}.${table}') AS indexes`);
  return [Number(size.heap), Number(size.indexes)];
}

/** Each client has 20 gardens of its own, or all write to the same one, or to it and their own. */
async function measureCommits(): Promise<string> {
  const own = (client: number) => `own-${client}-${Math.floor(random() * 20)}`;
  const hot = () => "hot";
  const mixed = (client: number, index: number) => (index === 0 ? hot() : own(client));
  const rows: string[][] = [];
  for (const [title, writes, clients, pick, phases] of [
    ["own gardens, one write a commit", 1, 8, own, 1],
    ["own gardens, one write a commit, two phases", 1, 8, own, 2],
    ["one garden, one write a commit", 1, 8, hot, 1],
    ["own gardens, 48 writes a commit", groupWrites, 8, own, 1],
    ["own gardens, 48 writes a commit, two phases", groupWrites, 8, own, 2],
    ["one garden, 48 writes a commit", groupWrites, 8, hot, 1],
    ["own gardens and one hot, 48 writes a commit", groupWrites, 8, mixed, 1],
  ] as const) {
    await sql.unsafe(`TRUNCATE ${schema}.plants, ${schema}.gardens, ${schema}.idempotency_hashes`);
    const logBefore = await readLog();
    const endsAtMs = performance.now() + seconds * 1_000;
    let commits = 0;
    await Promise.all(
      Array.from({ length: clients }, async (_, client) => {
        while (performance.now() < endsAtMs) {
          const gardens = Array.from({ length: writes }, (_, index) => pick(client, index));
          await commit(gardens, { phases });
          commits++;
        }
      }),
    );
    const log = (await readLog()) - logBefore;
    rows.push([
      title,
      Math.round((commits * writes) / seconds).toLocaleString("en"),
      Math.round(commits / seconds).toLocaleString("en"),
      Math.round(log / (commits * writes)).toLocaleString("en"),
    ]);
  }
  return renderTable(["8 clients", "writes/s", "commits/s", "log bytes a write"], rows);
}

/** Gardens that nobody wrote to since the last checkpoint: the log then holds whole pages. */
async function measureColdLog(): Promise<string> {
  const gardens = 500_000;
  await sql.unsafe(`TRUNCATE ${schema}.plants, ${schema}.gardens;
    INSERT INTO ${schema}.gardens SELECT 'g' || n, 4 FROM generate_series(0, ${gardens - 1}) AS n;
    INSERT INTO ${schema}.plants SELECT 'g' || n, id, 'Monstera deliciosa', 'living room'
      FROM generate_series(1, 4) AS id, generate_series(0, ${gardens - 1}) AS n`);
  // Now, so that it writes nothing to the log while that is measured.
  await sql.unsafe("VACUUM (ANALYZE)");
  const rows: string[][] = [];
  for (const compression of ["off", "pglz"]) {
    await sql.unsafe("CHECKPOINT");
    const logBefore = await readLog();
    const commits = 400;
    for (let count = 0; count < commits; count++) {
      const group = Array.from({ length: groupWrites }, () => `g${Math.floor(random() * gardens)}`);
      await commit(group, { compression });
    }
    const log = (await readLog()) - logBefore;
    rows.push([compression, Math.round(log / (commits * groupWrites)).toLocaleString("en")]);
  }
  return renderTable(["wal_compression", "log bytes of a write to cold pages"], rows);
}

async function readLog(): Promise<number> {
  const [log] = await sql.unsafe("SELECT pg_current_wal_lsn() - '0/0' AS bytes");
  return Number(log.bytes);
}

/**
 * One group of creates as the service writes them: lock the counters, insert, move the counters on.
 */
async function commit(
  gardens: readonly string[],
  { withKeys = false, phases = 1, compression = "off" },
): Promise<void> {
  const connection = await sql.reserve();
  const touched = [...new Set(gardens)].toSorted().join(",");
  try {
    await connection.unsafe("BEGIN");
    if (compression !== "off") {
      await connection.unsafe(`SET LOCAL wal_compression = ${compression}`);
    }
    await connection.unsafe(
      `INSERT INTO ${schema}.gardens SELECT unnest(string_to_array($1, ',')), 0 ON CONFLICT DO NOTHING`,
      [touched],
    );
    const counters = await connection.unsafe(
      `SELECT garden, last_id FROM ${schema}.gardens
         WHERE garden = ANY (string_to_array($1, ',')) ORDER BY garden FOR UPDATE`,
      [touched],
    );
    const lastIds = new Map<string, number>();
    for (const { garden, last_id } of counters) lastIds.set(garden, Number(last_id));
    const ids = gardens.map((garden) => {
      const id = (lastIds.get(garden) ?? 0) + 1;
      lastIds.set(garden, id);
      return id;
    });
    const plants = [gardens.join(","), ids.join(",")];
    await connection.unsafe(
      `INSERT INTO ${schema}.plants
         SELECT garden, id, 'Monstera deliciosa', 'living room'
           FROM unnest(string_to_array($1, ','), string_to_array($2, ',')::bigint[]) AS new (garden, id)
         ON CONFLICT DO NOTHING`,
      plants,
    );
    if (withKeys) {
      await connection.unsafe(
        `INSERT INTO ${schema}.idempotency_hashes
           SELECT garden, sha256(gen_random_uuid()::text::bytea), sha256('a request'), id, 1800000000000
             FROM unnest(string_to_array($1, ','), string_to_array($2, ',')::bigint[]) AS new (garden, id)`,
        plants,
      );
    }
    await connection.unsafe(
      `UPDATE ${schema}.gardens SET last_id = moved.last_id
         FROM unnest(string_to_array($1, ','), string_to_array($2, ',')::bigint[])
           AS moved (garden, last_id) WHERE gardens.garden = moved.garden`,
      [[...lastIds.keys()].join(","), [...lastIds.values()].join(",")],
    );
    const name = crypto.randomUUID();
    await connection.unsafe(phases === 1 ? "COMMIT" : `PREPARE TRANSACTION '${name}'`);
    if (phases === 2) await connection.unsafe(`COMMIT PREPARED '${name}'`);
  } finally {
    connection.release();
  }
}
