/**
 * What can be checked of the units where no systemd runs: what a backup leaves, and what
 * follows a start that fails.
 */
import { expect, test } from "bun:test";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../testing/command.ts";
import { skipsWithout } from "../testing/skipping.ts";
import { makeTemporaryFolder } from "../testing/temporary-folder.ts";

const pathOf = (name: string) => join(import.meta.dir, "systemd", name);
const readUnit = (name: string) => readFileSync(pathOf(name), "utf8");

test("the backup unit makes a backup that can be restored, deletes old ones, and says when", async () => {
  const backup = readUnit("plantstore-backup.service");
  using folder = makeTemporaryFolder();
  const [bin, state, metrics] = ["bin", "state", "metrics"].map((name) => {
    mkdirSync(join(folder.path, name));
    return join(folder.path, name);
  }) as [string, string, string];
  symlinkSync(join(import.meta.dir, "../bin/plantstore"), join(bin, "plantstore"));
  const database = join(folder.path, "plants.db");
  const env = {
    PATH: `${bin}:/usr/bin:/bin`,
    PLANTSTORE_DATABASE: database,
    STATE_DIRECTORY: state,
    METRICS: metrics,
    KEEP_DAYS: /\bKEEP_DAYS=(\S+)/.exec(backup)?.[1] ?? "",
  };
  /** As systemd would run its lines, one after the other until one fails. */
  const run = () =>
    [...backup.matchAll(/^ExecStart=\+?\/bin\/sh -euc '(.*)'$/gm)].every(([, line = ""]) => {
      const script = line.replaceAll("$$", "$").replaceAll("%%", "%");
      return Bun.spawnSync(["/bin/sh", "-euc", script], { env }).exitCode === 0;
    });
  const [old, recent] = ["plants-old.backup", "plants-recent.db"];
  for (const [name, days] of [[old, 15.5] as const, [recent, 13] as const]) {
    writeFileSync(join(state, name), "");
    const time = Date.now() / 1_000 - days * 86_400;
    utimesSync(join(state, name), time, time);
  }
  // There is no store yet.
  expect(run()).toBe(false);
  expect([readdirSync(metrics), readdirSync(state).toSorted()]).toEqual([[], [old, recent]]);

  await runInProcess(["token", "create", "ann", "--database", database]);
  expect(run()).toBe(true);
  const [made = "", ...others] = readdirSync(state).toSorted();
  expect([made, others]).toEqual([expect.stringMatching(/^plants-\d{4}-.*Z\.db$/), [recent]]);
  const restore = ["restore", join(state, made), "--database", join(folder.path, "restored.db")];
  expect(await runInProcess(restore)).toMatchObject({ exitCode: 0 });
  expect(readdirSync(metrics)).toEqual(["plantstore.prom"]);
  const text = readFileSync(join(metrics, "plantstore.prom"), "utf8");
  const [, seconds] = /^plantstore_backup_timestamp_seconds (\d+)$/m.exec(text) ?? [];
  expect(Math.abs(Number(seconds) - Date.now() / 1_000)).toBeLessThan(60);
});

test.skipIf(skipsWithout("systemd-analyze"))("systemd accepts the units", () => {
  const names = ["plantstore.service", "plantstore-backup.service", "plantstore-backup.timer"];
  const command = ["systemd-analyze", "verify", "--man=no", ...names.map(pathOf)];
  const lines = Bun.spawnSync(command).stderr.toString().split("\n");
  const complaints = lines.filter((line) => line.includes("plantstore"));
  // Where it isn't installed.
  expect(complaints.filter((line) => !line.includes("is not executable"))).toEqual([]);
});

test
  .skipIf(skipsWithout("systemd-analyze"))
  .each(["plantstore.service", "plantstore-backup.service"])(
  "%s has few rights: systemd rates its exposure below 2 of 10",
  (name) => {
    const command = ["systemd-analyze", "security", "--offline=true", "--threshold=20"];
    const { exitCode, stdout } = Bun.spawnSync([...command, "--no-pager", pathOf(name)]);
    expect([exitCode, stdout.toString().split("\n").at(-2)]).toEqual([
      0,
      expect.stringContaining(`level for ${name}: 1.`),
    ]);
  },
);

test.each([
  ["whose database is away is tried again, however often", "postgres://u@127.0.0.1:1/x", true],
  ["that was called wrongly is not tried again", '"postgres://u@127.0.0.1:1/x"', false],
])("a start %s", async (_, database, isTried) => {
  const unit = readUnit("plantstore.service");
  const { exitCode } = await runInProcess(["serve"], { PLANTSTORE_DATABASE: database });
  const ending = Number(/^RestartPreventExitStatus=(\d+)$/m.exec(unit)?.[1]);
  expect(exitCode).toBeGreaterThan(0);
  expect(exitCode !== ending).toBe(isTried);
  expect(unit).toMatch(/^\[Unit\]\n(?:.+\n)*StartLimitIntervalSec=0\n/m);
  expect(unit).toMatch(/^Restart=on-failure$/m);
});
