/** `plantstore garden list` and `garden delete`, on both engines. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { makeTerminal, runInProcess } from "../../test/command.ts";
import { makeDatabase, type TestDatabase } from "../../test/postgres-server.ts";
import { create } from "../../test/storage/tested-storage.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { openStorage } from "../storage/open.ts";
import { runCommand } from "./run.ts";

const folder = makeTemporaryFolder();
let database: TestDatabase;

beforeAll(async () => {
  database = await makeDatabase();
});

afterAll(async () => {
  await database.drop();
  folder[Symbol.dispose]();
});

test.each(["SQLite", "PostgreSQL"])("gardens are listed and deleted on %s", async (engine) => {
  const address = engine === "SQLite" ? join(folder.path, "plants.db") : database.url;
  const env = { PLANTSTORE_DATABASE: address };
  const run = (...args: string[]) => runInProcess(args, env);
  const storage = await openStorage(address, { isServing: true });
  try {
    const atMs = Date.UTC(2030, 0, 1);
    await storage.apply([create({ garden: "jwt", atMs }), create({ garden: "alice", atMs })]);
    // Where a service tries whether it can write.
    await storage.apply([create({ garden: "\n" })]);
    const { id } = JSON.parse((await run("token", "create", "alice", "--json")).out);
    const { id: other } = JSON.parse((await run("token", "create", "bob", "--json")).out);
    const counts = { plants: 1, lastEvent: 1, lastEventAt: "2030-01-01T00:00:00.000Z" };
    const listed = async () => JSON.parse((await run("garden", "list", "--json")).out);
    expect(await listed()).toEqual([
      { garden: "alice", ...counts, tokens: [id] },
      { garden: "bob", plants: 0, lastEvent: 0, lastEventAt: null, tokens: [other] },
      { garden: "jwt", ...counts, tokens: [] },
    ]);
    expect((await run("garden", "ls")).out).toMatch(
      /^GARDEN +PLANTS +LAST EVENT +TOKENS\nalice +1 +1 \(2.+\) +\w+ \(alice\)\nbob +0 +0 +\w+ \(bob\)\njwt +1 +1 \(2/,
    );

    const missing = await run("garden", "delete", "nobody", "--yes");
    expect([missing.exitCode, missing.errors]).toEqual([3, expect.stringContaining('"nobody"')]);
    const open = await run("garden", "delete", "alice", "--yes");
    expect([open.exitCode, open.errors]).toEqual([1, expect.stringContaining(`revoke ${id}`)]);
    const unasked = await run("garden", "delete", "jwt");
    expect([unasked.exitCode, unasked.errors]).toEqual([2, expect.stringContaining("--yes")]);
    const { terminal, written } = makeTerminal({ env, confirm: async () => false });
    expect(await runCommand(["garden", "delete", "jwt"], terminal)).toBe(1);
    expect(written.said).toEqual(["plantstore: Nothing was deleted."]);
    expect(await listed()).toHaveLength(3);

    await run("token", "revoke", id);
    expect(await run("garden", "delete", "alice", "--yes")).toMatchObject({
      exitCode: 0,
      errors: 'Deleted the garden "alice" with 1 plant.\n',
    });
    expect(await listed()).toMatchObject([{ garden: "bob" }, { garden: "jwt" }]);
  } finally {
    await storage.close();
  }
});
