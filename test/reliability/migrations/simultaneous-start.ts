/** Many instances start at once on an empty database. */
import { startService } from "../../end-to-end/running-service.ts";
import { makeDatabase } from "../../postgres-server.ts";

export const instancesCount = 10;

/** All of them must start and stop without errors, and the schema must be created once. */
export async function startAtOnce(program?: string): Promise<string[]> {
  const database = await makeDatabase();
  const faults: string[] = [];
  await Promise.all(
    Array.from({ length: instancesCount }, async () => {
      try {
        const args = ["--threads", "1", "--database-pool-size", "2"];
        await using service = await startService({ database: database.url, args, program });
        const { status } = await service.call("GET /readyz");
        if (status !== 200) faults.push(`not ready: ${status}`);
        service.signal("SIGTERM");
        const exitCode = await service.exited;
        if (exitCode !== 0) faults.push(`exit code ${exitCode}`);
        const { out } = service.output();
        if (/"level":"(?:warn|error)"/.test(out)) faults.push(`logged: ${out}`);
      } catch (error) {
        faults.push(`did not start: ${error}`);
      }
    }),
  );
  const schema = await database.query("SELECT version FROM plantstore_schema");
  if (schema.length !== 1) faults.push(`schemas: ${JSON.stringify(schema)}`);
  const makers = await database.query(
    `SELECT DISTINCT xmin FROM pg_class
       WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'`,
  );
  if (makers.length !== 1) faults.push(`the tables were created by ${makers.length} transactions`);
  await database.drop();
  return faults;
}
