/**
 * Writes and outcomes as text, for the way between the threads. A string crosses without being
 * cloned: 48 writes and their outcomes take 39 µs this way, and 82 µs as objects.
 */

import type { Outcome, Write } from "../../domain/ports.ts";

/** JSON has no bigint, so an id is sent as text. */
export function packWrites(writes: readonly Write[]): string {
  return JSON.stringify(writes.map((write) => ({ ...write, id: write.id?.toString() })));
}

export function unpackWrites(text: string): Write[] {
  return unpackIds(JSON.parse(text));
}

export function packOutcomes(outcomes: readonly Outcome[]): string {
  const packed = outcomes.map((outcome) =>
    outcome.kind === "created" ? { ...outcome, id: outcome.id.toString() } : outcome,
  );
  return JSON.stringify(packed);
}

export function unpackOutcomes(text: string): Outcome[] {
  return unpackIds(JSON.parse(text));
}

/** In place: copies of all the objects would take longer than parsing them. */
function unpackIds<Item extends object>(items: Item[]): Item[] {
  for (const item of items as { id?: string | bigint }[]) {
    if (item.id !== undefined) item.id = BigInt(item.id);
  }
  return items;
}
