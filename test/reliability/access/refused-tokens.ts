/** Opaque tokens that are refused, each kind for its own reason, as many as are wanted of each. */
import { issueToken } from "../../../src/auth/issue.ts";
import { makeToken } from "../../../src/auth/opaque-token.ts";
import { openStorage } from "../../../src/storage/open.ts";

/** By kind; the first is the one that the others are compared with. */
export async function makeRefusedTokens(
  database: string,
  count: number,
): Promise<Record<string, readonly string[]>> {
  const storage = await openStorage(database, { isServing: false });
  const store = async (isRevoked: boolean, expiresAtMs?: number): Promise<string[]> => {
    const tokens: string[] = [];
    for (let index = 0; index < count; index++) {
      const wish = { user: "gardener", expiresAtMs };
      const { token, record } = await issueToken(storage, wish, 0);
      if (isRevoked) await storage.revokeToken(record.id, 1);
      tokens.push(token);
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
      expired: await store(false, 1),
      revoked: await store(true),
    };
  } finally {
    await storage.close();
  }
}
