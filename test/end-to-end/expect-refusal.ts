/**
 * What all commands that cannot work have in common: one line that says why, an exit code, no
 * secret, and nothing is created or changed.
 */
import { expect } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../../testing/command.ts";
import { serverPassword } from "../../testing/postgres-server.ts";

export interface Refusal {
  /** The command's words, separated by spaces. */
  readonly command: string;
  /** As docs/command-line.md explains them. */
  readonly exitCode: number;
  /** A part of the line that the command prints. */
  readonly reason: string;
}

/** Runs the command, and expects that no file in the folder appears or changes. */
export async function expectRefusal(
  { command, exitCode, reason }: Refusal,
  { folder, env }: { readonly folder: string; readonly env: Readonly<Record<string, string>> },
): Promise<void> {
  const filesBefore = hashFiles(folder);

  const refused = await runInProcess(command, env);

  expect(refused).toMatchObject({ exitCode, out: "" });
  expect(refused.errors).toMatch(/^plantstore: .+\n$/);
  expect(refused.errors).toContain(reason);
  expect(refused.errors).not.toContain(serverPassword);
  expect(refused.errors).not.toContain("PRIVATE");
  expect(hashFiles(folder)).toEqual(filesBefore);
}

/** The names of all files and folders, and a hash of what each file holds. */
function hashFiles(folder: string) {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => ({
    name: join(entry.parentPath, entry.name),
    hash: entry.isFile() && Bun.hash(readFileSync(join(entry.parentPath, entry.name))),
  }));
}
