/** The tables of a new file are created once. Files that are not ours: test/end-to-end/. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { makeTemporaryFolder, touch } from "../../../test/temporary-folder.ts";
import { migrate } from "./migrate.ts";
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
