/** Compares two storages, garden by garden, by counts and checksums. Knows no engine. */
import {
  type MovedRecords,
  type RecordKind,
  recordKinds,
  type TransferStorage,
} from "../domain/transfer.ts";
import { readBatches, type Tally } from "./copy.ts";

/** Records that are compared together: those of a garden, or one token. */
export interface Digest {
  readonly group: string;
  readonly records: number;
  /** SHA-256 of the records in their order, in hexadecimal. */
  readonly checksum: string;
}

export interface Difference {
  readonly kind: RecordKind;
  /** Absent: the storage holds nothing of it. */
  readonly source: Digest | undefined;
  readonly target: Digest | undefined;
}

export interface Comparison {
  readonly kind: RecordKind;
  readonly source: Total;
  readonly target: Total;
  /** How many groups are not the same on both sides. */
  readonly differing: number;
}

interface Total {
  readonly records: number;
  /** Of the checksums, in their order. */
  readonly checksum: string;
}

/** Reads both storages whole. Tells differences as they are found, and resolves to the sums. */
export async function verifyAll(
  source: TransferStorage,
  target: TransferStorage,
  tally: Tally,
  signal: AbortSignal,
  tell: (difference: Difference) => void,
): Promise<readonly Comparison[]> {
  tally.plantsInAll = await source.count("plants");
  const comparisons: Comparison[] = [];
  for (const kind of recordKinds) {
    const count = (records: number) => {
      if (kind === "plants") tally.plants += records;
    };
    const pairs = pairUp(
      digestAll(source, kind, signal, count),
      digestAll(target, kind, signal, () => {}),
    );
    comparisons.push(await compare(kind, pairs, tell));
  }
  return comparisons;
}

type Pair = readonly [source: Digest | undefined, target: Digest | undefined];

async function compare(
  kind: RecordKind,
  pairs: AsyncIterable<Pair>,
  tell: (difference: Difference) => void,
): Promise<Comparison> {
  const sums = [new Bun.CryptoHasher("sha256"), new Bun.CryptoHasher("sha256")] as const;
  const records: [number, number] = [0, 0];
  let differing = 0;
  for await (const pair of pairs) {
    for (const side of [0, 1] as const) {
      records[side] += pair[side]?.records ?? 0;
      sums[side].update(pair[side]?.checksum ?? "");
    }
    const [source, target] = pair;
    if (source?.checksum === target?.checksum) continue;
    differing++;
    tell({ kind, source, target });
  }
  return {
    kind,
    source: { records: records[0], checksum: sums[0].digest("hex") },
    target: { records: records[1], checksum: sums[1].digest("hex") },
    differing,
  };
}

/** Digests of the same group next to each other, in the order of both. */
async function* pairUp(
  sources: AsyncGenerator<Digest, void>,
  targets: AsyncGenerator<Digest, void>,
): AsyncGenerator<Pair> {
  let [source, target] = await Promise.all([sources.next(), targets.next()]);
  while (!source.done || !target.done) {
    const order = source.done
      ? 1
      : target.done
        ? -1
        : Buffer.compare(Buffer.from(source.value.group), Buffer.from(target.value.group));
    yield [
      order <= 0 ? (source.value ?? undefined) : undefined,
      order >= 0 ? (target.value ?? undefined) : undefined,
    ];
    [source, target] = await Promise.all([
      order <= 0 ? sources.next() : source,
      order >= 0 ? targets.next() : target,
    ]);
  }
}

async function* digestAll<Kind extends RecordKind>(
  storage: TransferStorage,
  kind: Kind,
  signal: AbortSignal,
  count: (records: number) => void,
): AsyncGenerator<Digest, void> {
  let open: { group: string; records: number; hash: Bun.CryptoHasher } | undefined;
  for await (const batch of readBatches(storage, kind, undefined, signal)) {
    for (const record of batch) {
      const [group, text] = canonical[kind](record);
      if (group !== open?.group) {
        if (open) yield close(open);
        open = { group, records: 0, hash: new Bun.CryptoHasher("sha256") };
      }
      open.records++;
      open.hash.update(text);
    }
    count(batch.length);
  }
  if (open) yield close(open);
}

function close(open: { group: string; records: number; hash: Bun.CryptoHasher }): Digest {
  return { group: open.group, records: open.records, checksum: open.hash.digest("hex") };
}

/** What a record is compared with, and the same text for the same record on every engine. */
const canonical: {
  readonly [Kind in RecordKind]: (record: MovedRecords[Kind]) => [group: string, text: string];
} = {
  tokens: (token) => [
    token.id,
    line(
      ...[token.id, token.hash, token.user, token.garden, token.scope, token.note],
      ...[token.createdAtMs, token.expiresAtMs, token.revokedAtMs, token.lastUsedAtMs],
    ),
  ],
  counters: ({ garden, lastId }) => [garden, line(garden, lastId)],
  keys: ({ garden, key, request, plantId, expiresAtMs }) => [
    garden,
    line(garden, key, request, plantId, expiresAtMs),
  ],
  plants: ({ garden, id, name, tag }) => [garden, line(garden, id, name, tag)],
};

function line(...values: readonly (string | number | bigint | undefined)[]): string {
  const plain = values.map((value) => (typeof value === "bigint" ? String(value) : value));
  return `${JSON.stringify(plain)}\n`;
}
