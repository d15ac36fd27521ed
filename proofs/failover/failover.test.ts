/** A PostgreSQL primary is lost under load, and no confirmed write is lost. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { runStatement, startPostgres } from "../../test/postgres-server.ts";
import { skipsUnless } from "../../test/skipping.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { hasHaproxy, startDatabaseProxy } from "./database-proxy.ts";
import { admitChecks, FailoverTrial } from "./prove.ts";

setDefaultTimeout(120_000);

/** Few, since other tests run at the same time. */
const clients = 4;
let trial: FailoverTrial;
/** Another one in each run; a failure shows it. */
let seed = Math.floor(Math.random() * 1_000_000);

const isSkipped = skipsUnless(hasHaproxy, "not installed: haproxy");

beforeAll(async () => {
  if (!isSkipped) trial = await FailoverTrial.start(clients);
});

afterAll(() => trial?.stop());

/**
 * `npm run prove failover` also cuts the standby off before the primary is killed, so that commits
 * wait in vain, and shuts the primary down.
 */
describe.skipIf(isSkipped)(
  "every response holds, and writes resume without a restart, when the primary is",
  () => {
    test.each(["killed", "frozen"] as const)("%s", async (loss) => {
      if (loss !== "killed") await trial.replaceStandby();
      const { faults } = await trial.run(loss, ++seed);
      expect({ seed, faults }).toEqual({ seed, faults: [] });
    });
  },
);

test.skipIf(isSkipped)("an old primary that comes back gets no connections", async () => {
  using folder = makeTemporaryFolder();
  const old = await startPostgres(["-c", "fsync=off"], { folder: folder.path });
  const current = await startPostgres(["-c", "fsync=off"]);
  await Promise.all([admitChecks(old), admitChecks(current)]);
  const { port, url } = old;
  const urlOf = (proxyPort: number) => url("postgres").replace(`:${port}/`, `:${proxyPort}/`);
  const proxy = urlOf(await startDatabaseProxy("postgresql.cfg", [old, current], urlOf));
  const findPort = async () => (await runStatement(proxy, "SHOW port"))[0]?.port;
  expect(await findPort()).toBe(String(port));
  await old.stop();
  await waitFor(() => findPort().catch(() => undefined));
  const again = await startPostgres(["-c", "fsync=off"], { folder: folder.path, port });
  // Several checks long.
  await Bun.sleep(2_000);
  expect(await findPort()).toBe(String(current.port));
  await Promise.all([again.stop(), current.stop()]);
});
