/**
 * The data of each released version: a SQLite file with a log that holds the last writes, a
 * PostgreSQL database as statements, and what callers received. Later versions must read them. Only
 * 2.0 has a backup: later ones are plain SQLite files.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";

export interface KeptAnswers {
  readonly token: string;
  readonly readToken: string;
  readonly expiredToken: string;
  readonly revokedToken: string;
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

export type Engine = "sqlite" | "postgres";

export function readAnswers(version: string): Promise<Record<Engine, KeptAnswers>> {
  return Bun.file(keptPath(version, "answers.json")).json();
}
