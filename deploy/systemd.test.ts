/**
 * What can be checked of the units where no systemd runs: what a backup leaves, and what
 * follows a start that fails.
 */
import { describe, expect, test } from "bun:test";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runInProcess } from "../test/command.ts";
import { skipsWithout } from "../test/skipping.ts";
import { makeTemporaryFolder } from "../test/temporary-folder.ts";

const unit = readFileSync(join(import.meta.dir, "systemd/plantstore.service"), "utf8");

describe("the backup unit", () => {
  const backup = readFileSync(join(import.meta.dir, "systemd/plantstore-backup.service"), "utf8");
  const setting = (name: string) => new RegExp(`\\b${name}=(\\S+)`).exec(backup)?.[1] ?? "";

  /** As systemd would run its lines, one after the other until one fails. */
  function run(variables: Record<string, string>): number {
    for (const [, line = ""] of backup.matchAll(/^ExecStart=\+?\/bin\/sh -euc '(.*)'$/gm)) {
      const script = line.replaceAll("$$", "$").replaceAll("%%", "%");
      const { exitCode } = Bun.spawnSync(["/bin/sh", "-euc", script], { env: variables });
      if (exitCode !== 0) return exitCode;
    }
    return 0;
  }

  test("makes a backup that can be restored, deletes old ones, and says when for node_exporter", async () => {
    using folder = makeTemporaryFolder();
    const [bin, state, metrics] = ["bin", "state", "metrics"].map((name) => {
      mkdirSync(join(folder.path, name));
      return join(folder.path, name);
    }) as [string, string, string];
    symlinkSync(join(import.meta.dir, "../bin/plantstore"), join(bin, "plantstore"));
    const database = join(folder.path, "plants.db");
    const variables = {
      PATH: `${bin}:/usr/bin:/bin`,
      PLANTSTORE_DATABASE: database,
      STATE_DIRECTORY: state,
      METRICS: metrics,
      KEEP_DAYS: setting("KEEP_DAYS"),
    };
    const [old, recent] = ["plants-old.backup", "plants-recent.db"];
    for (const [name, days] of [[old, 15.5] as const, [recent, 13] as const]) {
      writeFileSync(join(state, name), "");
      const time = Date.now() / 1_000 - days * 86_400;
      utimesSync(join(state, name), time, time);
    }
    // There is no store yet.
    expect(run(variables)).not.toBe(0);
    expect([readdirSync(metrics), readdirSync(state).toSorted()]).toEqual([[], [old, recent]]);

    await runInProcess(["token", "create", "ann", "--database", database]);
    expect(run(variables)).toBe(0);
    const [made = "", ...others] = readdirSync(state).toSorted();
    expect([/^plants-\d{4}-.*Z\.db$/.test(made), others]).toEqual([true, [recent]]);
    const restored = join(folder.path, "restored.db");
    const restore = ["restore", join(state, made), "--database", restored];
    expect(await runInProcess(restore)).toMatchObject({ exitCode: 0 });
    expect(readdirSync(metrics)).toEqual(["plantstore.prom"]);
    const text = readFileSync(join(metrics, "plantstore.prom"), "utf8");
    const [, seconds] = /^plantstore_backup_timestamp_seconds (\d+)$/m.exec(text) ?? [];
    expect(Math.abs(Number(seconds) - Date.now() / 1_000)).toBeLessThan(60);
    const checked = Bun.which("promtool")
      ? Bun.spawnSync(["promtool", "check", "metrics"], {
          stdin: Buffer.from(text),
        }).exitCode
      : 0;
    expect(checked).toBe(0);
    expect(setting("StateDirectory")).toBe("plantstore-backups");
  });
});

test.skipIf(skipsWithout("systemd-analyze"))("systemd accepts the units", () => {
  const names = ["plantstore.service", "plantstore-backup.service", "plantstore-backup.timer"];
  const units = names.map((name) => join(import.meta.dir, "systemd", name));
  const { stderr } = Bun.spawnSync(["systemd-analyze", "verify", "--man=no", ...units]);
  const complaints = stderr
    .toString()
    .split("\n")
    .filter((line) => line.includes("plantstore"));
  // Where it isn't installed.
  expect(complaints.filter((line) => !line.includes("is not executable"))).toEqual([]);
});

test.each([
  ["whose database is away is tried again, however often", "postgres://u@127.0.0.1:1/x", true],
  ["that was called wrongly is not tried again", '"postgres://u@127.0.0.1:1/x"', false],
])("a start %s", async (_, database, isTried) => {
  const { exitCode } = await runInProcess(["serve"], { PLANTSTORE_DATABASE: database });
  const ending = Number(/^RestartPreventExitStatus=(\d+)$/m.exec(unit)?.[1]);
  expect(exitCode).toBeGreaterThan(0);
  expect(exitCode !== ending).toBe(isTried);
  expect(unit).toMatch(/^\[Unit\]\n(?:.+\n)*StartLimitIntervalSec=0\n/m);
  expect(unit).toMatch(/^Restart=on-failure$/m);
});
