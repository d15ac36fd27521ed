/**
 * The data of each released version: a SQLite file, for some with a log that holds the last writes,
 * a PostgreSQL database as statements, for some a backup, and what callers received. Later versions
 * must read them.
 */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

export interface KeptAnswers {
  readonly token: string;
  readonly readToken: string;
  /** The earliest versions have left none of these two. */
  readonly expiredToken?: string;
  readonly revokedToken?: string;
  /** The whole list, with ids. */
  readonly plants: string;
  /** A create that succeeded, and may be sent again under its key. */
  readonly keyed: { readonly key: string; readonly body: string; readonly location: string };
}

const folder = join(import.meta.dir, "versions");

export const keptVersions: readonly string[] = readdirSync(folder).toSorted();

type KeptName = "plants.db" | "plants.db-wal" | "postgres.sql" | "plants.backup" | "answers.json";

export function keptPath(version: string, name: KeptName) {
  return join(folder, version, name);
}

/** Those that left a backup of the SQLite file, one for each format so far. */
export const backupVersions = keptVersions.filter((version) =>
  existsSync(keptPath(version, "plants.backup")),
);

export type Engine = "sqlite" | "postgres";

export function readAnswers(version: string): Promise<Record<Engine, KeptAnswers>> {
  return Bun.file(keptPath(version, "answers.json")).json();
}
