/** Ten instances on an empty database, as when all are deployed at once. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { startService } from "../end-to-end/running-service.ts";
import { makeDatabase } from "../postgres-server.ts";

setDefaultTimeout(120_000);

test("ten instances that start at once migrate an empty database once, and all serve it", async () => {
  await using database = await makeDatabase();
  const run = async () => {
    const args = ["--threads", "1", "--database-pool-size", "2"];
    await using service = await startService({ database: database.url, args });
    const { status } = await service.call("GET /readyz");
    service.signal("SIGTERM");
    const exitCode = await service.exited;
    return { status, exitCode, troubles: service.output().out.match(/"level":"(?:warn|error)"/) };
  };
  const runs = await Promise.all(Array.from({ length: 10 }, run));
  expect(runs).toEqual(runs.map(() => ({ status: 200, exitCode: 0, troubles: null })));
  const makers = await database.query(
    `SELECT DISTINCT xmin FROM pg_class
       WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`,
  );
  expect(makers).toHaveLength(1);
});
