/**
 * Writes and outcomes as text, to be sent between threads. A string isn't cloned, so it takes half
 * the time of objects.
 */
import type { Outcome, Write } from "../../domain/storage.ts";

/** JSON has no bigint, so an id is sent as text. */
type Packed<Value> = Value extends { readonly id: bigint }
  ? Omit<Value, "id"> & { readonly id: string }
  : Value extends { readonly id: bigint | undefined }
    ? Omit<Value, "id"> & { readonly id?: string }
    : Value;

export function packWrites(writes: readonly Write[]): string {
  return JSON.stringify(writes.map((write) => ({ ...write, id: write.id?.toString() })));
}

export function unpackWrites(text: string): Write[] {
  const packed: Packed<Write>[] = JSON.parse(text);
  return packed.map(
    (write) => ({ ...write, id: write.id === undefined ? undefined : BigInt(write.id) }) as Write,
  );
}

export function packOutcomes(outcomes: readonly Outcome[]): string {
  const packed = outcomes.map((outcome) =>
    outcome.kind === "created" ? { ...outcome, id: outcome.id.toString() } : outcome,
  );
  return JSON.stringify(packed);
}

export function unpackOutcomes(text: string): Outcome[] {
  const packed: Packed<Outcome>[] = JSON.parse(text);
  return packed.map((outcome) =>
    outcome.kind === "created" ? { ...outcome, id: BigInt(outcome.id) } : outcome,
  );
}
