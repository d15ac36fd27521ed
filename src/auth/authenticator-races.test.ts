/** What an authenticator is told while it forgets: it is used, and not remembered. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { openStorage } from "../storage/open.ts";
import { Authenticator } from "./authenticator.ts";
import { issueToken } from "./issue.ts";

const trustMs = 4_000;

test("a revocation does not hide behind what an older copy's predecessor says late", async () => {
  using folder = makeTemporaryFolder();
  const storage = await openStorage(join(folder.path, "plants.db"), { isServing: true });
  let nowMs = 1_000_000;
  const { token, record } = await issueToken(storage, { user: "alice" }, nowMs);
  const changes = await storage.countTokenChanges();
  const late = Promise.withResolvers<void>();
  const tokens = {
    noteTokenUses: storage.noteTokenUses,
    // As the older copy has it, which reached the same count by other changes.
    countTokenChanges: async () => changes,
    async findToken(hash: string) {
      const found = await storage.findToken(hash);
      await late.promise;
      return found;
    },
  };
  const authenticator = new Authenticator(tokens, () => nowMs);
  await authenticator.refresh();
  const asked = authenticator.authenticate(token);
  await storage.revokeToken(record.id, nowMs);
  nowMs += trustMs + 1;
  await authenticator.refresh();
  late.resolve();
  expect((await asked).user).toBe("alice");
  await expect(authenticator.authenticate(token)).rejects.toMatchObject({
    code: "unauthenticated",
  });
  await storage.close();
});
