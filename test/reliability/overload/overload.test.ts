/** More requests than the service can take while its storage is stalled. */
import { expect, test } from "bun:test";
import { startService } from "../../end-to-end/running-service.ts";
import { makePlace } from "../audited-store.ts";
import { flood, stallPostgres, stallSqlite } from "./flood.ts";

test.each(["sqlite", "postgres"] as const)(
  "a flood of creates on a locked %s is bounded",
  async (engine) => {
    await using place = await makePlace(engine);
    const { database } = place;
    await using service = await startService({ args: ["--threads", "1"], database });
    const stall = engine === "sqlite" ? stallSqlite : stallPostgres;
    expect(await flood(service, () => stall(database))).toEqual([]);
  },
  120_000,
);
