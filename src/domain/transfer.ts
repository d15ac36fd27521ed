/**
 * What a move from one storage to another needs: everything that a storage keeps, as records that
 * are read in one order and stored as they are. The comments are the contract, as in storage.ts.
 */
import type { Plant, PlantId } from "./plant.ts";
import type { TokenRecord } from "./token.ts";

/**
 * By kind, in the order in which a move stores them: no id is assigned anew when it is cut short.
 */
export interface MovedRecords {
  readonly tokens: TokenRecord & {
    /** Which of two tokens of the same moment was made first. */
    readonly position: bigint;
  };
  /** The highest id that a garden assigned or was given (see `PlantStorage.apply`). */
  readonly counters: { readonly garden: string; readonly lastId: PlantId };
  /** Idempotency keys. */
  readonly keys: {
    readonly garden: string;
    readonly key: string;
    readonly request: string;
    readonly plantId: PlantId;
    readonly expiresAtMs: number;
  };
  readonly plants: Plant & { readonly garden: string };
}

export type RecordKind = keyof MovedRecords;

export const recordKinds: readonly RecordKind[] = ["tokens", "counters", "keys", "plants"];

/**
 * The order of records: tokens by id, counters by garden, keys by garden and key, plants by garden
 * and id; text by the bytes of its UTF-8, on every engine. Nothing is promised of other processes'
 * writes that come between two calls.
 */
export interface TransferStorage {
  /** The first `count` records behind `after` (from the first on, if absent), in their order. */
  read<Kind extends RecordKind>(
    kind: Kind,
    after: MovedRecords[Kind] | undefined,
    count: number,
  ): Promise<readonly MovedRecords[Kind][]>;

  /** The last record in the order; absent when there is none. */
  last<Kind extends RecordKind>(kind: Kind): Promise<MovedRecords[Kind] | undefined>;

  /** How many records there are behind `after`, or at all. May take long. */
  count<Kind extends RecordKind>(
    kind: Kind,
    after?: MovedRecords[Kind] | undefined,
  ): Promise<number>;

  /**
   * Stores the records in one transaction, as they are, and resolves once they are on stable
   * storage. One whose key is taken is left out, whether the same record has it or another one.
   */
  add<Kind extends RecordKind>(kind: Kind, records: readonly MovedRecords[Kind][]): Promise<void>;
}

/** The same storage, whose failures are told in other words. */
export function retold(
  storage: TransferStorage,
  tell: (error: unknown) => unknown,
): TransferStorage {
  async function told<Result>(result: Promise<Result>): Promise<Result> {
    try {
      return await result;
    } catch (error) {
      throw tell(error);
    }
  }
  return {
    read: (kind, after, count) => told(storage.read(kind, after, count)),
    last: (kind) => told(storage.last(kind)),
    count: (kind, after) => told(storage.count(kind, after)),
    add: (kind, records) => told(storage.add(kind, records)),
  };
}
