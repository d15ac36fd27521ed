/** Tokens where another program has emptied a table. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { makeTemporaryFolder } from "../../../test/temporary-folder.ts";
import { issueToken } from "../../auth/opaque-token.ts";
import { openSqlite } from "./engine.ts";

test("are counted, and so are their revocations, also when the count was deleted", async () => {
  using folder = makeTemporaryFolder();
  const path = join(folder.path, "plants.db");
  const storage = openSqlite(path, { isServing: true });
  using other = new Database(path);
  other.run("DELETE FROM token_changes");
  const { record } = await issueToken(storage, { user: "alice" }, 0);
  expect(await storage.countTokenChanges()).toBe(1);
  await storage.revokeToken(record.id, 1);
  expect(await storage.countTokenChanges()).toBe(2);
  await storage.close();
});
