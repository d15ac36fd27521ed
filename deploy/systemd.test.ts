/**
 * What can be checked of the units where no systemd runs: what a backup leaves, and what
 * follows a start that fails.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
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

function pathOf(name: string): string {
  return join(import.meta.dir, "systemd", name);
}

describe("plantstore-backup.service", () => {
  const unit = readFileSync(pathOf("plantstore-backup.service"), "utf8");
  let folder: ReturnType<typeof makeTemporaryFolder>;
  let database = "";
  /** Where backups go. */
  let state = "";
  /** What node_exporter reads. */
  let metrics = "";

  beforeEach(() => {
    folder = makeTemporaryFolder();
    database = join(folder.path, "plants.db");
    state = join(folder.path, "state");
    metrics = join(folder.path, "metrics");
    mkdirSync(state);
    mkdirSync(metrics);
    const bin = join(folder.path, "bin");
    mkdirSync(bin);
    symlinkSync(join(import.meta.dir, "../bin/plantstore"), join(bin, "plantstore"));
  });

  afterEach(() => folder[Symbol.dispose]());

  /** Runs the unit's lines as systemd would: one by one, until one fails. Returns whether none did. */
  function runUnit(): boolean {
    const [, keepDays = ""] = /\bKEEP_DAYS=(\S+)/.exec(unit) ?? [];
    const env = {
      PATH: `${join(folder.path, "bin")}:/usr/bin:/bin`,
      PLANTSTORE_DATABASE: database,
      STATE_DIRECTORY: state,
      METRICS: metrics,
      KEEP_DAYS: keepDays,
    };
    const lines = unit.matchAll(/^ExecStart=\+?\/bin\/sh -euc '(.*)'$/gm);
    return [...lines].every(([, line = ""]) => {
      const script = line.replaceAll("$$", "$").replaceAll("%%", "%");
      return Bun.spawnSync(["/bin/sh", "-euc", script], { env }).exitCode === 0;
    });
  }

  /** An empty file in the folder of backups. */
  function writeOldBackup(name: string, days: number): void {
    const path = join(state, name);
    writeFileSync(path, "");
    const seconds = Date.now() / 1_000 - days * 86_400;
    utimesSync(path, seconds, seconds);
  }

  async function createStore(): Promise<void> {
    await runInProcess(["token", "create", "ann", "--database", database]);
  }

  test("makes a backup that can be restored, with the time in its name", async () => {
    await createStore();

    expect(runUnit()).toBe(true);

    const backups = readdirSync(state);
    expect(backups).toEqual([expect.stringMatching(/^plants-\d{4}-.*Z\.db$/)]);
    const backup = join(state, backups[0] ?? "");
    const restored = join(folder.path, "restored.db");
    const { exitCode } = await runInProcess(["restore", backup, "--database", restored]);
    expect(exitCode).toBe(0);
  });

  test("deletes backups of more than 14 days", async () => {
    await createStore();
    writeOldBackup("plants-old.backup", 15.5);
    writeOldBackup("plants-recent.db", 13);

    expect(runUnit()).toBe(true);

    expect(readdirSync(state).toSorted()).toEqual([
      expect.stringMatching(/^plants-\d{4}-.*Z\.db$/),
      "plants-recent.db",
    ]);
  });

  test("writes the time of the backup for Prometheus", async () => {
    await createStore();
    const before = Math.floor(Date.now() / 1_000);

    expect(runUnit()).toBe(true);

    expect(readdirSync(metrics)).toEqual(["plantstore.prom"]);
    const text = readFileSync(join(metrics, "plantstore.prom"), "utf8");
    const [, seconds] = /^plantstore_backup_timestamp_seconds (\d+)$/m.exec(text) ?? [];
    expect(Number(seconds)).toBeGreaterThanOrEqual(before);
    expect(Number(seconds)).toBeLessThanOrEqual(Date.now() / 1_000);
  });

  test("deletes nothing, and writes no time, if the backup fails", () => {
    writeOldBackup("plants-old.backup", 15.5);
    writeOldBackup("plants-recent.db", 13);

    // There is no store.
    expect(runUnit()).toBe(false);

    expect(readdirSync(state).toSorted()).toEqual(["plants-old.backup", "plants-recent.db"]);
    expect(readdirSync(metrics)).toEqual([]);
  });
});

describe("plantstore.service", () => {
  const unit = readFileSync(pathOf("plantstore.service"), "utf8");
  /** With this exit code, systemd doesn't try again. */
  const finalExitCode = Number(/^RestartPreventExitStatus=(\d+)$/m.exec(unit)?.[1]);

  test("is started again after a failure, however often", () => {
    expect(unit).toMatch(/^\[Unit\]\n(?:.+\n)*StartLimitIntervalSec=0\n/m);
    expect(unit).toMatch(/^Restart=on-failure$/m);
  });

  test("is started again if its database is away", async () => {
    const variables = { PLANTSTORE_DATABASE: "postgres://u@127.0.0.1:1/x" };

    const { exitCode } = await runInProcess("serve", variables);

    expect(exitCode).toBeGreaterThan(0);
    expect(exitCode).not.toBe(finalExitCode);
  });

  test("isn't started again if a setting is invalid", async () => {
    // With quotes, as a shell would remove them.
    const variables = { PLANTSTORE_DATABASE: '"postgres://u@127.0.0.1:1/x"' };

    const { exitCode } = await runInProcess("serve", variables);

    expect(exitCode).toBeGreaterThan(0);
    expect(exitCode).toBe(finalExitCode);
  });
});

describe.skipIf(skipsWithout("systemd-analyze"))("systemd", () => {
  test("accepts the units", () => {
    const names = ["plantstore.service", "plantstore-backup.service", "plantstore-backup.timer"];
    const command = ["systemd-analyze", "verify", "--man=no", ...names.map(pathOf)];

    const lines = Bun.spawnSync(command).stderr.toString().split("\n");

    const complaints = lines
      .filter((line) => line.includes("plantstore"))
      // Where it isn't installed.
      .filter((line) => !line.includes("is not executable"));
    expect(complaints).toEqual([]);
  });

  test.each(["plantstore.service", "plantstore-backup.service"])(
    "rates the exposure of %s below 2 of 10",
    (name) => {
      const flags = ["--offline=true", "--threshold=20", "--no-pager"];
      const { exitCode, stdout } = Bun.spawnSync([
        "systemd-analyze",
        "security",
        ...flags,
        pathOf(name),
      ]);

      expect(stdout.toString().split("\n").at(-2)).toContain(`level for ${name}: 1.`);
      expect(exitCode).toBe(0);
    },
  );
});
