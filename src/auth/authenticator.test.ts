/** From a token to its caller, on a real storage and injected clocks. */
import { afterAll, beforeEach, expect, mock, spyOn, test } from "bun:test";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { Clocks } from "../shared/clocks.ts";
import { openStorage } from "../storage/open.ts";
import { Authenticator } from "./authenticator.ts";
import { issueToken } from "./opaque-token.ts";

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

/** A token that is known from the next refresh on. */
async function issue(expiresAtMs?: number) {
  const issued = await issueToken(storage, { user: "alice", expiresAtMs }, wallMs);
  await authenticator.refresh();
  return issued;
}

/** The user of a token, or the code of the refusal. */
async function ask(token: string): Promise<string> {
  return authenticator.authenticate(token).then(
    (caller) => caller.user,
    (error) => error.code ?? String(error),
  );
}

test("refuses a token from the moment it expires, even a cached one", async () => {
  const { token } = await issue(wallMs + 100);
  passTime(99);
  expect(await ask(token)).toBe("alice");
  passTime(1);
  expect(await ask(token)).toBe("unauthenticated");
});

test("uses its cache until the last refresh began too long ago", async () => {
  const { token } = await issue();
  const lookUps = spyOn(storage, "findToken");
  await ask(token);
  passTime(trustMs);
  const { countTokenChanges } = storage;
  spyOn(storage, "countTokenChanges").mockImplementation(() => {
    passTime(trustMs);
    return countTokenChanges();
  });
  await authenticator.refresh();
  await ask(token);
  expect(lookUps).toHaveBeenCalledTimes(1);
  passTime(1);
  await ask(token);
  expect(lookUps).toHaveBeenCalledTimes(2);
});

test.each([
  [
    "the clock was set back",
    () => {
      wallMs -= 3_000;
      monotonicMs += trustMs + 1;
    },
  ],
  [
    "the machine slept",
    () => {
      wallMs += trustMs + 1;
    },
  ],
])("trusts its cache no longer, even if %s", async (_, passTimeOddly) => {
  const { token, record } = await issue();
  expect(await ask(token)).toBe("alice");
  await storage.revokeToken(record.id, wallMs);
  passTimeOddly();
  expect(await ask(token)).toBe("unauthenticated");
});

test("a token that is revoked during its lookup isn't cached", async () => {
  const { token, record } = await issue();
  const held = Promise.withResolvers<void>();
  const { findToken } = storage;
  spyOn(storage, "findToken").mockImplementation(async (hash) => {
    const found = await findToken(hash);
    await held.promise;
    return found;
  });
  const asking = ask(token);
  await storage.revokeToken(record.id, wallMs);
  await authenticator.refresh();
  held.resolve();
  expect(await asking).toBe("alice");
  expect(await ask(token)).toBe("unauthenticated");
});

test("a revocation isn't lost in a failover to a standby with the same count of changes", async () => {
  spyOn(storage, "countTokenChanges").mockResolvedValue(1);
  const { token, record } = await issue();
  expect(await ask(token)).toBe("alice");
  await storage.revokeToken(record.id, wallMs);
  passTime(trustMs + 1);
  await authenticator.refresh();
  expect(await ask(token)).toBe("unauthenticated");
});

test("while the storage fails, a token is neither refused nor cached as bad", async () => {
  const { token } = await issue();
  const gone = new PlantStoreError("unavailable", "The disk is gone.");
  spyOn(storage, "findToken").mockRejectedValueOnce(gone);
  expect(await ask(token)).toBe("unavailable");
  expect(await ask(token)).toBe("alice");
});
