/** Moves records out of and into SQLite, on a connection that is used for nothing else. */
import type { Database, SQLQueryBindings } from "bun:sqlite";
import type { RecordKind, TransferStorage } from "../../domain/transfer.ts";
import {
  keyOf,
  movedTables,
  namesOf,
  type Row,
  selectionOf,
  type Table,
  toRecord,
  valuesOf,
} from "../moved-tables.ts";
import { countTokenChange } from "./tokens.ts";

export function createTransfer(database: Database, nowMs: number): TransferStorage {
  /** The records of a kind that a move is about, those behind a key if `isBehind`. */
  function source(kind: RecordKind, isBehind: boolean): string {
    const table = tableOf(kind);
    const names = namesOf(keyOf(table));
    const behind = `(${names}) > (${keyOf(table).map(() => "?")})`;
    const live = kind === "keys" ? `expires_at_ms > ${BigInt(nowMs)}` : "TRUE";
    return `FROM ${table.name} WHERE ${live}${isBehind ? ` AND ${behind}` : ""}`;
  }

  return {
    async read(kind, after, count) {
      const table = tableOf(kind);
      const from = source(kind, after !== undefined);
      return database
        .query<Row, SQLQueryBindings[]>(
          `SELECT ${selectionOf(table)} ${from} ORDER BY ${namesOf(keyOf(table))} LIMIT ?`,
        )
        .all(...(after ? valuesOf(after, keyOf(table)) : []), count)
        .map((row) => toRecord<typeof kind>(table, row));
    },

    async last(kind) {
      const table = tableOf(kind);
      const order = keyOf(table).map(({ name }) => `"${name}" DESC`);
      const row = database
        .query<Row, []>(
          `SELECT ${selectionOf(table)} ${source(kind, false)} ORDER BY ${order} LIMIT 1`,
        )
        .get();
      return row ? toRecord<typeof kind>(table, row) : undefined;
    },

    async count(kind, after) {
      const row = database
        .query<{ count: bigint }, SQLQueryBindings[]>(
          `SELECT count(*) AS count ${source(kind, after !== undefined)}`,
        )
        .get(...(after ? valuesOf(after, keyOf(tableOf(kind))) : []));
      return Number(row?.count);
    },

    async add(kind, records) {
      const { name, columns } = tableOf(kind);
      const insert = database.query(
        `INSERT INTO ${name} (${namesOf(columns)}) VALUES (${columns.map(() => "?")})
           ON CONFLICT DO NOTHING`,
      );
      database
        .transaction(() => {
          for (const record of records) insert.run(...valuesOf(record, columns));
          if (kind === "tokens") database.run(countTokenChange);
        })
        .immediate();
    },
  };
}

/** What PostgreSQL keeps as the position of a token is the number of its row here. */
function tableOf(kind: RecordKind): Table {
  const table = movedTables[kind];
  const columns = table.columns.map((column) =>
    column.name === "position" ? { ...column, name: "rowid" } : column,
  );
  return { ...table, columns };
}
