/**
 * What can be checked of the unit where no systemd runs: what a reload does, and what follows a start
 * that fails.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runProgram, startService, waitFor } from "../test/end-to-end/running-service.ts";

const unit = readFileSync(join(import.meta.dir, "systemd/plantstore.service"), "utf8");
const certificates = join(import.meta.dir, "../test/certificates");

/** As systemd would run it. */
async function reload(pid: number): Promise<number> {
  const line = /^ExecReload=(.*)$/m.exec(unit)?.[1] ?? "";
  return Bun.spawn(line.replace("$MAINPID", String(pid)).split(" ")).exited;
}

test("a reload reads the certificate again", async () => {
  const variables = {
    PLANTSTORE_TLS_CERT: join(certificates, "server.pem"),
    PLANTSTORE_TLS_KEY: join(certificates, "server-key.pem"),
  };
  await using service = await startService({ variables });
  expect(await reload(service.pid)).toBe(0);
  await waitFor(() => service.output().out.includes("certificate reloaded") || undefined);
});

test("a reload without a certificate leaves the service alone", async () => {
  await using service = await startService();
  expect(await reload(service.pid)).toBe(0);
  await Bun.sleep(200);
  expect((await service.call("GET /healthz")).status).toBe(200);
});

test.each([
  ["whose database is away is tried again, however often", "postgres://u@127.0.0.1:1/x", true],
  ["that was called wrongly is not tried again", '"postgres://u@127.0.0.1:1/x"', false],
])("a start %s", async (_, database, isTried) => {
  const { exitCode } = await runProgram(["serve"], { PLANTSTORE_DATABASE: database });
  const ending = Number(/^RestartPreventExitStatus=(\d+)$/m.exec(unit)?.[1]);
  expect(exitCode).toBeGreaterThan(0);
  expect(exitCode !== ending).toBe(isTried);
  expect(unit).toMatch(/^\[Unit\]\n(?:.+\n)*StartLimitIntervalSec=0\n/m);
  expect(unit).toMatch(/^Restart=on-failure$/m);
});
