/** Row-level security, by which a server leaves out rows of what is read and does not say so. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { waitFor } from "../../../test/end-to-end/running-service.ts";
import { makeDatabase } from "../../../test/postgres-server.ts";
import { create, remove } from "../../../test/storage/tested-storage.ts";
import { defaultConnectionLimits } from "../storage.ts";
import { openPostgres } from "./engine.ts";

setDefaultTimeout(120_000);

test("row-level security that may hide plants is refused at the start, and hides nothing later", async () => {
  await using database = await makeDatabase();
  const role = `${database.name}_reader`;
  /** A busy machine takes its time to connect. */
  const limits = { ...defaultConnectionLimits, connectTimeoutMs: 20_000 };
  const open = (url: string) => openPostgres(url, { isServing: true, limits });
  const secure = (how: "ENABLE" | "DISABLE") =>
    database.query(`ALTER TABLE plants ${how} ROW LEVEL SECURITY`);
  const failureOf = (work: Promise<unknown>): Promise<Error> =>
    work.then(
      () => new Error("It did not fail."),
      (error) => error,
    );
  await (await open(database.url)).close();
  await database.query(
    `CREATE ROLE ${role} LOGIN PASSWORD 'secret';
     GRANT ALL ON SCHEMA public TO ${role};
     GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO ${role};
     CREATE POLICY visible ON plants TO ${role} USING (id <> 1)`,
  );
  try {
    const url = database.url.replace(/\/\/[^@]+@/, `//${role}:secret@`);
    const storage = await open(url);
    const list = () => storage.list("home", undefined, 10);
    await storage.apply([create(), create()]);
    await secure("ENABLE");
    const reason = "the role lacks rights: BYPASSRLS on plants.";
    expect((await failureOf(open(url))).message).toEndWith(reason);
    const works = [list, () => storage.apply([remove(1n)]), () => storage.apply([create()])];
    for (const work of works) {
      expect(await failureOf(work())).toMatchObject({ code: "unavailable" });
    }
    await secure("DISABLE");
    expect(await waitFor(() => list().catch(() => undefined))).toHaveLength(2);
    await storage.close();
  } finally {
    await database.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  }
});
