/** Authentication with opaque tokens, and when its cache is trusted: real storage, test clocks. */
import { afterAll, beforeEach, describe, expect, mock, spyOn, test } from "bun:test";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { Clocks } from "../shared/clocks.ts";
import { openStorage } from "../storage/open.ts";
import { Authenticator } from "./authenticator.ts";
import { issueToken } from "./opaque-token.ts";

/** How long the cache is trusted after a refresh. */
const trustMs = 4_000;

const folder = makeTemporaryFolder();
const storage = await openStorage(join(folder.path, "plants.db"), { isServing: true });
let wallMs = 1_000_000;
let monotonicMs = 0;
let authenticator: Authenticator;

beforeEach(async () => {
  mock.restore();
  const clocks = new Clocks(
    () => wallMs,
    () => monotonicMs,
  );
  authenticator = new Authenticator(storage, clocks);
  await authenticator.refresh();
});

afterAll(async () => {
  await storage.close();
  folder[Symbol.dispose]();
});

function passTime(durationMs: number): void {
  wallMs += durationMs;
  monotonicMs += durationMs;
}

/** Issues a token to alice that the authenticator can cache. */
async function issue(expiresAtMs?: number) {
  const issued = await issueToken(storage, { user: "alice", expiresAtMs }, wallMs);
  // Otherwise the next refresh would see the new token and clear the cache.
  await authenticator.refresh();
  return issued;
}

/** The user of a token, or the code of the refusal. */
async function authenticate(token: string): Promise<string> {
  return authenticator.authenticate(token).then(
    (caller) => caller.user,
    (error) => error.code ?? String(error),
  );
}

test("a token is refused from the moment it expires, even if it's cached", async () => {
  const { token } = await issue(wallMs + 100);
  passTime(99);
  expect(await authenticate(token)).toBe("alice");
  passTime(1);
  expect(await authenticate(token)).toBe("unauthenticated");
});

test("a cached token isn't looked up again within the trusted time after a refresh", async () => {
  const { token } = await issue();
  const lookUps = spyOn(storage, "findToken");
  await authenticate(token);
  passTime(trustMs);
  await authenticate(token);
  expect(lookUps).toHaveBeenCalledTimes(1);
});

test("the trusted time is counted from the start of a refresh", async () => {
  const { token } = await issue();
  const lookUps = spyOn(storage, "findToken");
  await authenticate(token);
  passTime(trustMs);
  const { countTokenChanges } = storage;
  spyOn(storage, "countTokenChanges").mockImplementation(() => {
    // The refresh itself takes all of the trusted time.
    passTime(trustMs);
    return countTokenChanges();
  });
  await authenticator.refresh();

  await authenticate(token);
  expect(lookUps).toHaveBeenCalledTimes(1);
  passTime(1);
  await authenticate(token);
  expect(lookUps).toHaveBeenCalledTimes(2);
});

describe("a cached token that was revoked is refused after the trusted time", () => {
  test("even if the clock was set back", async () => {
    const { token, record } = await issue();
    expect(await authenticate(token)).toBe("alice");
    await storage.revokeToken(record.id, wallMs);
    wallMs -= 3_000;
    monotonicMs += trustMs + 1;
    expect(await authenticate(token)).toBe("unauthenticated");
  });

  test("even if the machine slept", async () => {
    const { token, record } = await issue();
    expect(await authenticate(token)).toBe("alice");
    await storage.revokeToken(record.id, wallMs);
    // The monotonic clock stands still while a machine sleeps.
    wallMs += trustMs + 1;
    expect(await authenticate(token)).toBe("unauthenticated");
  });

  test("even if a failover leads to a standby with the same count of changes", async () => {
    spyOn(storage, "countTokenChanges").mockResolvedValue(1);
    const { token, record } = await issue();
    expect(await authenticate(token)).toBe("alice");
    await storage.revokeToken(record.id, wallMs);
    passTime(trustMs + 1);
    await authenticator.refresh();
    expect(await authenticate(token)).toBe("unauthenticated");
  });
});

test("a token that is revoked while it's looked up isn't cached", async () => {
  const { token, record } = await issue();
  const held = Promise.withResolvers<void>();
  const { findToken } = storage;
  spyOn(storage, "findToken").mockImplementation(async (hash) => {
    const found = await findToken(hash);
    await held.promise;
    return found;
  });
  const authenticating = authenticate(token);
  await storage.revokeToken(record.id, wallMs);
  await authenticator.refresh();
  held.resolve();
  expect(await authenticating).toBe("alice");
  expect(await authenticate(token)).toBe("unauthenticated");
});

test("a token is unavailable while the storage fails, and valid afterwards", async () => {
  const { token } = await issue();
  const gone = new PlantStoreError("unavailable", "The disk is gone.");
  spyOn(storage, "findToken").mockRejectedValueOnce(gone);
  expect(await authenticate(token)).toBe("unavailable");
  expect(await authenticate(token)).toBe("alice");
});
