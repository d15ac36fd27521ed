/** Which tables and columns keep the records of a move. They are named alike on every engine. */
import type { MovedRecords, RecordKind } from "../domain/transfer.ts";

export interface Column {
  readonly name: string;
  readonly field: string;
  readonly type: "text" | "integer" | "time";
}

export interface Table {
  readonly name: string;
  /** The columns of the key come first. */
  readonly columns: readonly Column[];
  readonly keyLength: number;
}

export type Value = string | bigint | number | null;
export type Row = Readonly<Record<string, Value>>;

const garden: Column = { name: "garden", field: "garden", type: "text" };

export const movedTables: { readonly [Kind in RecordKind]: Table } = {
  tokens: {
    name: "tokens",
    keyLength: 1,
    columns: [
      { name: "id", field: "id", type: "text" },
      { name: "hash", field: "hash", type: "text" },
      { name: "user", field: "user", type: "text" },
      garden,
      { name: "scope", field: "scope", type: "text" },
      { name: "note", field: "note", type: "text" },
      { name: "created_at_ms", field: "createdAtMs", type: "time" },
      { name: "expires_at_ms", field: "expiresAtMs", type: "time" },
      { name: "revoked_at_ms", field: "revokedAtMs", type: "time" },
      { name: "last_used_at_ms", field: "lastUsedAtMs", type: "time" },
      { name: "position", field: "position", type: "integer" },
    ],
  },
  /** The highest id that each garden has ever had. */
  counters: {
    name: "gardens",
    keyLength: 1,
    columns: [garden, { name: "last_id", field: "lastId", type: "integer" }],
  },
  keys: {
    name: "idempotency_keys",
    keyLength: 2,
    columns: [
      garden,
      { name: "key", field: "key", type: "text" },
      { name: "request", field: "request", type: "text" },
      { name: "plant_id", field: "plantId", type: "integer" },
      { name: "expires_at_ms", field: "expiresAtMs", type: "time" },
    ],
  },
  plants: {
    name: "plants",
    keyLength: 2,
    columns: [
      garden,
      { name: "id", field: "id", type: "integer" },
      { name: "name", field: "name", type: "text" },
      { name: "tag", field: "tag", type: "text" },
    ],
  },
};

export function keyOf(table: Table): readonly Column[] {
  return table.columns.slice(0, table.keyLength);
}

/** The values of some columns, as a statement takes them. */
export function valuesOf<Kind extends RecordKind>(
  record: MovedRecords[Kind],
  columns: readonly Column[],
): Value[] {
  const fields = record as unknown as Readonly<Record<string, Value | undefined>>;
  return columns.map(({ field }) => fields[field] ?? null);
}

/** From a row whose columns are named after the fields, as `selectionOf` has them. */
export function toRecord<Kind extends RecordKind>(table: Table, row: Row): MovedRecords[Kind] {
  const record: Record<string, Value | undefined> = { ...row };
  for (const { field, type } of table.columns) {
    if (type === "time") record[field] = row[field] === null ? undefined : Number(row[field]);
  }
  return record as unknown as MovedRecords[Kind];
}

/** Quoted, because `user` means something else in PostgreSQL. */
export function namesOf(columns: readonly Column[]): string {
  return columns.map(({ name }) => `"${name}"`).join(", ");
}

export function selectionOf({ columns }: Table): string {
  return columns.map(({ name, field }) => `"${name}" AS "${field}"`).join(", ");
}
