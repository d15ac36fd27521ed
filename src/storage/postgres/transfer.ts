/** Moves records out of and into PostgreSQL, each batch by itself or all in one transaction. */
import type { ClientBase, QueryResult } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import type { RecordKind, TransferStorage } from "../../domain/transfer.ts";
import {
  type Column,
  keyOf,
  movedTables,
  namesOf,
  selectionOf,
  toRecord,
  valuesOf,
} from "../moved-tables.ts";
import type { Attempts } from "./attempts.ts";
import { liftTimeouts } from "./connection.ts";
import { hasState } from "./failure.ts";

/** To count may take a long look at all there is. */
const countMs = 60 * 60 * 1000;

/** How the statements of a move are sent. */
interface Statements {
  read(text: string, values?: readonly unknown[]): Promise<QueryResult>;
  /** One that may take long. */
  readLong(text: string, values: readonly unknown[]): Promise<QueryResult>;
  write(text: string, values: readonly unknown[]): Promise<unknown>;
}

/** Each by itself, and again where that may help. */
export function eachByItself(attempts: Attempts): Statements {
  return {
    read: (text, values) => attempts.read(text, values),
    readLong: (text, values) =>
      attempts.transact(
        async (client) => {
          await client.query("BEGIN READ ONLY");
          await liftTimeouts(client);
          const result = await client.query(text, [...values]);
          await client.query("COMMIT");
          return result;
        },
        { dueAtMs: performance.now() + countMs },
      ),
    // Not as a commit whose outcome may be unknown: it can be done again.
    write: (text, values) =>
      attempts.transact((client) => client.query(text, [...values]), {
        isRepeatable: true,
        advice: "",
      }),
  };
}

/** All in the transaction that the connection is in. */
export function allOn(client: ClientBase): Statements {
  const query = (text: string, values: readonly unknown[] = []) => client.query(text, [...values]);
  return { read: query, readLong: query, write: query };
}

export function createTransfer(statements: Statements, nowMs: number): TransferStorage {
  /** The records of a kind that a move is about, those behind a key if `isBehind`. */
  function source(kind: RecordKind, isBehind: boolean): string {
    const table = movedTables[kind];
    const names = namesOf(keyOf(table));
    const behind = `(${names}) > (${keyOf(table).map((_, index) => `$${index + 1}`)})`;
    const live = kind === "keys" ? `expires_at_ms > ${BigInt(nowMs)}` : "TRUE";
    return `FROM ${table.name} WHERE ${live}${isBehind ? ` AND ${behind}` : ""}`;
  }

  return {
    async read(kind, after, count) {
      const table = movedTables[kind];
      const { rows } = await statements.read(
        `SELECT ${selectionOf(table)} ${source(kind, after !== undefined)}
           ORDER BY ${namesOf(keyOf(table))} LIMIT ${count}`,
        after ? valuesOf(after, keyOf(table)) : [],
      );
      return rows.map((row) => toRecord<typeof kind>(table, row));
    },

    async last(kind) {
      const table = movedTables[kind];
      const order = keyOf(table).map(({ name }) => `"${name}" DESC`);
      const { rows } = await statements.read(
        `SELECT ${selectionOf(table)} ${source(kind, false)} ORDER BY ${order} LIMIT 1`,
      );
      return rows.map((row) => toRecord<typeof kind>(table, row))[0];
    },

    async count(kind, after) {
      const { rows } = await statements.readLong(
        `SELECT count(*) AS count ${source(kind, after !== undefined)}`,
        after ? valuesOf(after, keyOf(movedTables[kind])) : [],
      );
      return Number(rows[0].count);
    },

    async add(kind, records) {
      const { name, columns } = movedTables[kind];
      const values = records.map((record) => valuesOf(record, columns));
      try {
        await statements.write(
          `${kind === "tokens" ? movePosition : ""}
             INSERT INTO ${name} (${namesOf(columns)}) SELECT * FROM unnest(${columns.map(toArray)})
               ON CONFLICT DO NOTHING`,
          columns.map((_, index) => values.map((row) => row[index])),
        );
      } catch (error) {
        if (!hasState(error, ...refusals)) throw error;
        const message = `PostgreSQL cannot keep some of the ${kind}, which no service has made so.`;
        throw new PlantStoreError("conflict", message, { cause: error });
      }
    },
  };
}

/** By what a record holds: a character, a value, a size that the tables do not take. */
const refusals = ["22", "23", "54"];

function toArray({ type }: Column, index: number): string {
  return `$${index + 1}::${type === "text" ? "text" : "bigint"}[]`;
}

/** Later tokens come behind those that were moved. The position is their last column. */
const movePosition = `
  WITH counted AS (INSERT INTO token_changes (one, count)
    SELECT 1, coalesce(max(position), 0::bigint) + 1 FROM unnest($11::bigint[]) AS moved (position)
    ON CONFLICT (one) DO UPDATE SET count = greatest(token_changes.count + 1, excluded.count))`;
