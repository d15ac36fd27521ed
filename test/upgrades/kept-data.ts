/**
 * The data that each released version left behind: a SQLite file, a PostgreSQL database as
 * statements, and what callers were told. Later versions are held against them.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";

export interface KeptAnswers {
  readonly token: string;
  readonly readToken: string;
  /** The whole list, with ids. */
  readonly plants: string;
  /** A create that was answered, and may be sent again under its key. */
  readonly keyed: { readonly key: string; readonly body: string; readonly location: string };
}

const folder = join(import.meta.dir, "versions");

export const keptVersions: readonly string[] = readdirSync(folder).toSorted();

export function keptPath(version: string, name: "plants.db" | "postgres.sql" | "answers.json") {
  return join(folder, version, name);
}

export type Engine = "sqlite" | "postgres";

export function readAnswers(version: string): Promise<Record<Engine, KeptAnswers>> {
  return Bun.file(keptPath(version, "answers.json")).json();
}
