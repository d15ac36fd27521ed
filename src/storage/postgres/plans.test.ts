/** What PostgreSQL reads for a request, if it planned the statement while the tables were empty. */
import { afterAll, beforeAll, expect, setDefaultTimeout, spyOn, test } from "bun:test";
import { Client } from "pg";
import { makeDatabase, type TestDatabase } from "../../../testing/postgres-server.ts";
import { create, emptyTables, put, remove } from "../../../testing/tested-storage.ts";
import { defaultConnectionLimits, type Storage } from "../storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(120_000);

/** No call below asks for more rows of a table, with some left over for rows that share a page. */
const rowsMax = 100;
/** A scan of a whole table, or of a whole index, takes at least three times as many. */
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
const explained: Explained[] = [];

beforeAll(async () => {
  database = await makeDatabase();
  // On one connection, which plans each statement once.
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
    // Sends each plan to the client that ran the statement, too.
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

/** Everything that requests and periodic tasks send, each for a few rows. */
async function sendAll(first: number): Promise<void> {
  const ids = [first, first + 1, first + 2].map(BigInt);
  const keyOf = (key: string, index?: number) => ({ key, index, nowMs: 0, expiresAtMs: 9_000 });
  await storage.apply(["home", "other"].map((garden) => create({ garden })));
  await storage.apply([create({ idempotency: keyOf(`alone-${first}`) })]);
  const expired = { key: `expired-${first}`, nowMs: 0, expiresAtMs: 5 };
  await storage.apply([create({ idempotency: expired })]);
  await storage.apply([
    ...ids.map((id, index) => create({ id, idempotency: keyOf(`bulk-${first}`, index) })),
    create({ garden: "other", id: ids[0] }),
  ]);
  await storage.apply(ids.map((id) => put({ id, name: "Moss" })));
  await storage.apply([remove(ids[0] as bigint), remove(ids[1] as bigint), remove(-1n)]);
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
  await storage.findNewEvents(new Map(["home", "other", "none"].map((garden) => [garden, 0])));
  await Promise.all(["hash-1", "hash-2", "none"].map((hash) => storage.findToken(hash)));
  await storage.countTokenChanges();
  const uses = ["id-1", "id-2", "none"].map((id) => ({ id, usedAtMs: first }));
  await storage.noteTokenUses(uses);
  await storage.forgetKeys(10);
}

/** So many rows in every table that grows, in one garden where that is possible. */
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

/** How many rows one node of a plan has looked at. */
function rowsOf(node: PlanNode): number {
  const removed =
    (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Join Filter"] ?? 0);
  return (node["Actual Rows"] + removed) * node["Actual Loops"];
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

function isTooMuch({ plan }: Explained): boolean {
  const blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
  return blocks > blocksMax || nodesOf(plan).some((node) => rowsOf(node) > rowsMax);
}

test("a statement planned for empty tables reads no more than it was asked for in full ones", async () => {
  await sendAll(10);
  await fill(100_000);
  const emit = Client.prototype.emit;
  using _ = spyOn(Client.prototype, "emit").mockImplementation(function (
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
  await sendAll(300_000);
  expect(explained.length).toBeGreaterThan(40);
  expect(explained.filter(isTooMuch).map(({ statement }) => statement)).toEqual([]);
});
