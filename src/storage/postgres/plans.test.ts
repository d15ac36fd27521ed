/** How much PostgreSQL reads for a statement that it planned while the tables were empty. */
import { afterAll, beforeAll, expect, setDefaultTimeout, spyOn, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../testing/postgres-server.ts";
import { create, emptyTables, put, remove } from "../../../testing/tested-storage.ts";
import { defaultConnectionLimits, type Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(120_000);

/** No call in this test asks for more than 70 rows. Some more may share their pages. */
const rowsMax = 100;
/** A scan of a whole table, or of a whole index, reads at least three times as many. */
const blocksMax = 200;

/** A part of what `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)` prints. */
interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Join Filter"?: number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly PlanNode[];
}

interface Explained {
  readonly statement: string;
  readonly plan: PlanNode;
}

let database: TestDatabase;
let storage: Storage;

beforeAll(async () => {
  database = await makeDatabase();
  // A single connection plans each statement once.
  const limits = { ...defaultConnectionLimits, poolSize: 1 };
  const setUp = await openPostgres(database.url, { isServing: false, limits });
  await setUp.close();
  for (const table of ["plants", "gardens", "events", "idempotency_keys", "tokens"]) {
    await database.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
  }
  // Emptied after use, as the table of keys is after a quiet day: the planner expects no rows.
  await fill(1);
  await database.query(emptyTables);
  await database.query("ANALYZE");
  const settings = {
    session_preload_libraries: "auto_explain",
    "auto_explain.log_min_duration": 0,
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_format": "json",
    // High enough for the plan to be sent to the client that ran the statement.
    "auto_explain.log_level": "warning",
  };
  for (const [name, value] of Object.entries(settings)) {
    await database.query(`ALTER DATABASE ${database.name} SET ${name} = '${value}'`);
  }
  storage = await openPostgres(database.url, { isServing: true, limits, plantsMax: 1_000_000 });
});
afterAll(async () => {
  await storage.close();
  await database.drop();
});

/** Sends every statement of requests and periodic tasks, each for a few rows from this id on. */
async function sendAll(firstId: number): Promise<void> {
  await sendWrites(firstId);
  await sendReads();
  await sendTokenStatements(firstId);
  await storage.forgetKeys(10);
}

async function sendWrites(firstId: number): Promise<void> {
  const [first, second, third] = [BigInt(firstId), BigInt(firstId + 1), BigInt(firstId + 2)];
  const lifetime = { nowMs: 0, expiresAtMs: 9_000 };

  await storage.apply([create({ garden: "home" }), create({ garden: "other" })]);
  await storage.apply([create({ idempotency: { key: `alone-${firstId}`, ...lifetime } })]);
  const expired = { key: `expired-${firstId}`, nowMs: 0, expiresAtMs: 5 };
  await storage.apply([create({ idempotency: expired })]);

  const bulk = `bulk-${firstId}`;
  await storage.apply([
    create({ id: first, idempotency: { key: bulk, index: 0, ...lifetime } }),
    create({ id: second, idempotency: { key: bulk, index: 1, ...lifetime } }),
    create({ id: third, idempotency: { key: bulk, index: 2, ...lifetime } }),
    create({ id: first, garden: "other" }),
  ]);

  await storage.apply([
    put({ id: first, name: "Moss" }),
    put({ id: second, name: "Moss" }),
    put({ id: third, name: "Moss" }),
  ]);
  await storage.apply([remove(first), remove(second), remove(-1n)]);
}

async function sendReads(): Promise<void> {
  for (const order of ["asc", "desc"] as const) {
    for (const tag of [undefined, "", "rare"]) {
      await storage.list("home", undefined, 9, { order, tag });
      await storage.list("home", undefined, 70, { order, tag });
      await storage.list("home", 7n, 9, { order, tag, charactersMax: 99 });
    }
  }
  await storage.countByTag("home", { tag: "r", id: 0n }, 9);
  await storage.countPlants("home");

  await storage.readEvents("home", undefined, 9, 999);
  await storage.readEvents("home", 5, 9, 999);
  const lastEvents = new Map([
    ["home", 0],
    ["other", 0],
    ["none", 0],
  ]);
  await storage.findNewEvents(lastEvents);
}

async function sendTokenStatements(usedAtMs: number): Promise<void> {
  // At the same time, so that they share a statement.
  await Promise.all([
    storage.findToken("hash-1"),
    storage.findToken("hash-2"),
    storage.findToken("none"),
  ]);
  await storage.countTokenChanges();
  await storage.noteTokenUses([
    { id: "id-1", usedAtMs },
    { id: "id-2", usedAtMs },
    { id: "none", usedAtMs },
  ]);
}

/** Adds this many rows to every table that grows, in one garden where that is possible. */
async function fill(rows: number): Promise<void> {
  const numbers = `generate_series(1001, ${1_000 + rows}) AS number`;
  await database.query(`INSERT INTO plants SELECT 'home', number, 'Fern', '' FROM ${numbers}`);
  await database.query(`INSERT INTO gardens SELECT 'garden-' || number FROM ${numbers}`);
  await database.query(
    `INSERT INTO events SELECT 'home', number, 0, 'created', '', number, 'Fern', '' FROM ${numbers}`,
  );
  await database.query(
    `INSERT INTO idempotency_keys
       SELECT 'home', decode(md5(number::text), 'hex'), '', 9000 FROM ${numbers}`,
  );
  await database.query(
    `INSERT INTO tokens SELECT 'id-' || number, 'hash-' || number, '', 'home', 'read', '', 0,
       NULL, NULL, NULL, number FROM ${numbers}`,
  );
  await database.query(
    "UPDATE gardens SET last_id = 200000, last_event = 200000 WHERE garden = 'home'",
  );
}

/** How many rows a node of a plan has looked at. */
function rowsOf(node: PlanNode): number {
  const removed =
    (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Join Filter"] ?? 0);
  return (node["Actual Rows"] + removed) * node["Actual Loops"];
}

/** The node and all nodes below it. */
function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

function readsTooMuch({ plan }: Explained): boolean {
  const blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
  return blocks > blocksMax || nodesOf(plan).some((node) => rowsOf(node) > rowsMax);
}

/** Collects the plans that the server sends as notices, until it's disposed of. */
function collectPlans(explained: Explained[]): Disposable {
  const emit = Client.prototype.emit;
  return spyOn(Client.prototype, "emit").mockImplementation(function (
    this: Client,
    event: string | symbol,
    ...values: unknown[]
  ) {
    const json = /plan:\n(.*)/s.exec(String((values[0] as Error | undefined)?.message))?.[1];
    if (event === "notice" && json !== undefined) {
      const { "Query Text": statement, Plan: plan } = JSON.parse(json);
      explained.push({ statement, plan });
    }
    return emit.call(this, event, ...values);
  });
}

test("a statement planned for empty tables reads only what it is asked for in full ones", async () => {
  // Plans the statements.
  await sendAll(10);
  await fill(100_000);

  const explained: Explained[] = [];
  using _ = collectPlans(explained);
  await sendAll(300_000);

  expect(explained.length).toBeGreaterThan(40);
  expect(explained.filter(readsTooMuch).map(({ statement }) => statement)).toEqual([]);
});
