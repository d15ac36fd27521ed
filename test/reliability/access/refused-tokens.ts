/** Opaque tokens that are refused, each kind for its own reason, as many as are wanted of each. */
import { issueToken } from "../../../src/auth/issue.ts";
import { makeToken } from "../../../src/auth/opaque-token.ts";
import type { TokenRecord } from "../../../src/domain/token.ts";
import { openStorage } from "../../../src/storage/open.ts";

/** Stored together: one by one, each would wait for the disk. */
const storedAtOnce = 500;

/** By kind; the first is the one that the others are compared with. */
export async function makeRefusedTokens(
  database: string,
  count: number,
): Promise<Record<string, readonly string[]>> {
  const storage = await openStorage(database, { isServing: false });
  const transfer = storage.transfer(Date.now());
  let position = 0n;
  const store = async (fault: Partial<TokenRecord>): Promise<string[]> => {
    const tokens: string[] = [];
    const records: (TokenRecord & { position: bigint })[] = [];
    const keep = { addToken: async () => {} };
    for (let index = 0; index < count; index++) {
      const { token, record } = await issueToken(keep, { user: "gardener" }, Date.now());
      tokens.push(token);
      records.push({ ...record, ...fault, position: ++position });
    }
    for (let from = 0; from < count; from += storedAtOnce) {
      await transfer.add("tokens", records.slice(from, from + storedAtOnce));
    }
    return tokens;
  };
  const make = (spoil: (token: string) => string) => {
    return Array.from({ length: count }, () => spoil(makeToken()));
  };
  try {
    return {
      unknown: make((token) => token),
      "unknown, too": make((token) => token),
      "wrong checksum": make((token) => token.slice(0, -1) + (token.endsWith("0") ? "1" : "0")),
      "wrong prefix": make((token) => token.replace("plant_", "plane_")),
      expired: await store({ expiresAtMs: 1 }),
      revoked: await store({ revokedAtMs: 1 }),
    };
  } finally {
    await storage.close();
  }
}
