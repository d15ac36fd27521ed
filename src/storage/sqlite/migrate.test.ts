/** Schemas of real files: created once, and no hand on files that are not ours. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import { checkFile, migrate } from "./migrate.ts";
import { connect } from "./open.ts";

let folder: ReturnType<typeof makeTemporaryFolder>;
let database: Database;

beforeEach(() => {
  folder = makeTemporaryFolder();
  database = connect(touch(join(folder.path, "plants.db")));
});

afterEach(() => {
  database.close();
  folder[Symbol.dispose]();
});

test("does nothing if another process has created the tables just before", () => {
  using other = connect(join(folder.path, "plants.db"));
  const begin = database.transaction.bind(database);
  database.transaction = (work) => {
    migrate(other);
    other.run("INSERT INTO gardens VALUES ('home', 0, 0, 0, 0)");
    return begin(work);
  };
  migrate(database);
  expect(database.query("SELECT garden FROM gardens").all()).toEqual([{ garden: "home" }]);
});

test.each([
  [4, "its schema is 4, of version 1.0 or older: open it with 2.0 first"],
  [6, "its schema is 6, and this version knows schemas up to 5: use a newer version"],
])("refuses the schema %i", (schema, reason) => {
  migrate(database);
  database.run(`PRAGMA user_version = ${schema}`);
  expect(() => checkFile(database)).toThrow(reason);
});
