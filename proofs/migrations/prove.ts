/** `npm run prove migrations [rounds]`: ten instances start at once on an empty database. */
import { startService } from "../../test/end-to-end/running-service.ts";
import { makeDatabase } from "../../test/postgres-server.ts";
import { prove } from "../proof.ts";

const instancesCount = 10;

/** All of them must start and stop without errors, and the schema must be created once. */
export async function startAtOnce(program?: string): Promise<string[]> {
  await using database = await makeDatabase();
  const faults: string[] = [];
  const start = async () => {
    const args = ["--threads", "1", "--database-pool-size", "2"];
    await using service = await startService({ database: database.url, args, program });
    const { status } = await service.call("GET /readyz");
    if (status !== 200) faults.push(`not ready: ${status}`);
    service.signal("SIGTERM");
    const exitCode = await service.exited;
    if (exitCode !== 0) faults.push(`exit code ${exitCode}`);
    const { out } = service.output();
    if (/"level":"(?:warn|error)"/.test(out)) faults.push(`logged: ${out}`);
  };
  await Promise.all(
    Array.from({ length: instancesCount }, () =>
      start().catch((error) => faults.push(`did not start: ${error}`)),
    ),
  );
  const makers = await database.query(
    `SELECT DISTINCT xmin FROM pg_class
       WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`,
  );
  if (makers.length !== 1) faults.push(`the tables were created by ${makers.length} transactions`);
  return faults;
}

if (import.meta.main) {
  await prove({
    name: "migrations",
    trials: "rounds",
    count: 20,
    run: async () => ({ faults: await startAtOnce(), figures: {} }),
  });
}
