/** What the configuration of deploy/haproxy does with a primary that comes back. */
import { expect, test } from "bun:test";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { runStatement, startPostgres } from "../../test/postgres-server.ts";
import { skipsUnless } from "../../test/skipping.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import { hasHaproxy, startDatabaseProxy } from "./database-proxy.ts";
import { admitChecks } from "./prove.ts";

const isSkipped = skipsUnless(hasHaproxy, "not installed: haproxy");

test.skipIf(isSkipped)(
  "an old primary that comes back gets no connections",
  async () => {
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
  },
  120_000,
);
