/** Periodic tasks of the service, at intervals short enough for a test. */
import { expect, test } from "bun:test";
import { issueToken } from "../../src/auth/opaque-token.ts";
import { openStorage } from "../../src/storage/open.ts";
import { create } from "../storage/tested-storage.ts";
import { serveHere, waitFor } from "./running-service.ts";

const weekMs = 7 * 86_400_000;

test.each([
  ["without a quota", {}, { forgetEventsMs: 20 }],
  ["with a quota", { "garden-plants-max": "1000" }, { forgetEventsUnderQuotaMs: 20 }],
])(
  "%s, uses of tokens are noted, and expired keys and events forgotten",
  async (_, settings, intervals) => {
    const soon = { noteTokenUsesMs: 20, forgetIdempotencyKeysMs: 20, ...intervals };
    await using service = await serveHere({ threads: "2", ...settings }, soon);
    // Another opening of its storage, as a command would have it.
    const beside = await openStorage(service.database, { isServing: false });
    const nowMs = Date.now();
    const { token, record } = await issueToken(beside, { user: "ben" }, nowMs);
    expect((await service.call("GET /plants", { token })).status).toBe(200);
    const usedAtMs = await waitFor(
      async () => (await beside.listTokens()).find(({ id }) => id === record.id)?.lastUsedAtMs,
    );
    expect(usedAtMs).toBeGreaterThanOrEqual(nowMs);

    // A key is refused for another plant as long as it is remembered.
    const keyed = (key: string, atMs: number, name: string) =>
      create({ name, idempotency: { key, nowMs: atMs, expiresAtMs: atMs + 60_000 } });
    await beside.apply([keyed("live", nowMs, "Fern"), keyed("expired", 0, "Fern")]);
    const reuse = async (key: string, atMs: number) =>
      (await beside.apply([keyed(key, atMs, "another")]))[0]?.kind;
    await waitFor(async () => (await reuse("expired", 0)) === "created" || undefined);
    expect(await reuse("live", nowMs)).not.toBe("created");

    const times = [nowMs - weekMs - 1_000, nowMs - weekMs + 60_000];
    await beside.apply(times.map((atMs) => create({ garden: "dora", atMs })));
    const isForgotten = async () =>
      (await beside.readEvents("dora", undefined, 1, 99)).events[0]?.seq === 2 || undefined;
    await waitFor(isForgotten);
    await beside.close();
  },
);
