/**
 * Proofs find something wrong with builds that are broken on purpose. Each test breaks one thing in
 * a copy of the program, and runs the proof that must notice it.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { changeProgram } from "../testing/changed-program.ts";
import { skipsUnless } from "../testing/skipping.ts";
import { Deployment, type Layout } from "./deployment.ts";
import { hasHaproxy } from "./failover/database-proxy.ts";
import { FailoverTrial } from "./failover/prove.ts";
import { inject } from "./faults/prove.ts";
import { tryHistory } from "./histories/prove.ts";
import { tryCrowd } from "./hostile/prove.ts";
import { live, type Moment } from "./kills/prove.ts";
import { cutPower } from "./power-cuts/backup-cuts.ts";
import { cutRecording } from "./power-cuts/prove.ts";
import { shortRun, soak } from "./soak/prove.ts";

setDefaultTimeout(300_000);

/** A change in a file below src/, which has the text once. */
interface Change {
  readonly file: string;
  readonly text: string;
  readonly replacement: string;
}

/** Builds a changed program, and returns what a proof finds wrong with it, a line each. */
async function findFaults(
  changes: readonly Change[],
  prove: (program: string) => Promise<readonly string[]>,
): Promise<string> {
  using changed = changeProgram(
    ...changes.map(({ file, text, replacement }) => [file, text, replacement] as const),
  );
  return (await prove(changed.program)).join("\n");
}

describe("kills find a build that", () => {
  /** The service is killed or stopped once at each of these moments. */
  async function proveByKills(program: string, ends: readonly Moment[]) {
    return (await live({ seed: 6, threads: 1, isSecure: false, ends, program })).faults;
  }

  test("confirms writes before they are committed", async () => {
    const changes = [
      {
        file: "storage/sqlite/writer.ts",
        text: "begin.run();",
        replacement: "if (!database.inTransaction) begin.run();",
      },
      {
        file: "storage/sqlite/writer.ts",
        text: "commit.run();",
        replacement: "setTimeout(() => commit.run(), 1_000);",
      },
    ];

    const faults = await findFaults(changes, (program) =>
      proveByKills(program, ["first write", "load"]),
    );

    expect(faults).toMatch(/^lost: /m);
  });

  test("closes connections at once when it stops", async () => {
    const changes = [{ file: "process/thread.ts", text: "stop(false)", replacement: "stop(true)" }];

    const faults = await findFaults(changes, (program) => proveByKills(program, ["stop"]));

    expect(faults).toMatch(/^cut short: /m);
  });
});

describe("histories find a build that", () => {
  /** The first faults in one of many histories: each flaw shows in one of a few. */
  async function proveByHistories(program: string, layout: Layout): Promise<string[]> {
    const deployment = await Deployment.start(layout, program);
    const faults: string[] = [];
    for (let seed = 1; seed <= 200 && faults.length === 0; seed++) {
      faults.push(...(await tryHistory(deployment, seed, "none")).faults);
    }
    await deployment.stop();
    return faults;
  }

  test("shows a cached list after a commit that other lists show", async () => {
    const changes = [
      {
        file: "storage/sqlite/versions.ts",
        text: "count % 2 === 0 ? count : undefined",
        replacement: "count >> 1",
      },
      {
        file: "storage/sqlite/worker.ts",
        text: "    end();",
        replacement: "Bun.sleepSync(5); end();",
      },
    ];

    const faults = await findFaults(changes, (program) =>
      proveByHistories(program, { engine: "sqlite", threads: [1] }),
    );

    expect(faults).toMatch(/no order explains/);
  });

  test("compares a precondition before the write, not in it", async () => {
    const changes = [
      {
        file: "domain/plants.ts",
        text: 'const put = { kind: "put", ...this.#writeBase(caller), ...plant, preconditions } as const;',
        replacement: `const found = await this.get(caller, id).catch(() => undefined);
          const { ifMatch, ifNoneMatch } = preconditions ?? {};
          if (ifMatch && !(found && ifMatch.includes(contentHash(found)))) throw preconditionFailed();
          if (ifNoneMatch && found) throw preconditionFailed();
          const put = { kind: "put", ...this.#writeBase(caller), ...plant } as const;`,
      },
      {
        file: "domain/plants.ts",
        text: '} from "./plant.ts";',
        replacement: 'contentHash } from "./plant.ts";',
      },
    ];

    const faults = await findFaults(changes, (program) =>
      proveByHistories(program, { engine: "postgres", threads: [2] }),
    );

    expect(faults).toMatch(/no order explains/);
  });

  test("stores events in a second transaction on PostgreSQL", async () => {
    const storeEvents = 'queryFor(client, storeEventsStatement, events, "garden", ...eventNames)';
    const changes = [
      {
        file: "storage/postgres/group-transaction.ts",
        text: `${storeEvents},`,
        replacement: "",
      },
      {
        file: "storage/postgres/group-transaction.ts",
        text: 'if (command !== "COMMIT")',
        replacement: `if (command === "COMMIT") await ${storeEvents}; else`,
      },
    ];

    const faults = await findFaults(changes, (program) =>
      proveByHistories(program, { engine: "postgres", threads: [1, 1] }),
    );

    expect(faults).toMatch(/no order explains/);
  });
});

test("crowds find a build that serves requests first come, first served", async () => {
  const changes = [
    {
      file: "limits/fair-queue.ts",
      text: "push(garden: string, item: Item): void {",
      replacement: 'push(_garden: string, item: Item): void {\nconst garden = "";',
    },
  ];

  const faults = await findFaults(changes, async (program) => {
    const trial = await tryCrowd("HEADs of 1,000 plants", "sqlite, 1 thread", program);
    return trial.faults;
  });

  expect(faults).toMatch(/ took \d+ ms|the quiet user got/);
});

test("a soak finds a build that keeps a kilobyte of each request", async () => {
  const duration = "const durationMs = this.service.now() - this.startedAtMs;";
  const leak = "((globalThis as any).leaked ??= []).push({ at: new Array(150).fill(0) });";
  using changed = changeProgram(["http/exchange.ts", duration, `${duration} ${leak}`]);

  const { heapBytesPerResponse } = await soak({ ...shortRun, program: changed.program });

  expect(heapBytesPerResponse).toBeGreaterThan(shortRun.heapBytesPerResponseMax);
});

describe("power cuts find a build that", () => {
  async function proveByPowerCuts(program: string) {
    return (await cutRecording({ seed: 7, writes: 120, program }, 40)).faults;
  }

  /** Runs the statement a moment later: in another transaction, or in none. */
  function runLater(statement: string): Change {
    return {
      file: "storage/sqlite/writer.ts",
      text: `${statement};`,
      replacement: `setTimeout(() => ${statement}, 1);`,
    };
  }

  test("syncs only at checkpoints", async () => {
    const changes = [
      {
        file: "storage/sqlite/open.ts",
        text: "PRAGMA synchronous = FULL",
        replacement: "PRAGMA synchronous = NORMAL",
      },
    ];

    expect(await findFaults(changes, proveByPowerCuts)).toMatch(/lost: |GET .plants.*: 401/);
  });

  test("does not sync the folders that it makes", async () => {
    const changes = [
      { file: "storage/sqlite/open.ts", text: "syncFolderOf(made);", replacement: ";" },
    ];

    expect(await findFaults(changes, proveByPowerCuts)).toMatch(/GET .plants.*: 401/);
  });

  test("stores a key in a transaction after its plant", async () => {
    const changes = [runLater("storeKey.run(garden, toBytes(rowKey), entries, expiresAtMs)")];

    expect(await findFaults(changes, proveByPowerCuts)).toMatch(
      /created again: |duplicated: |miscounted: /,
    );
  });

  test("stores events in a second transaction", async () => {
    const changes = [
      runLater("storeEvent.run(garden, seq, atMs, type, user, plant.id, plant.name, plant.tag)"),
    ];

    expect(await findFaults(changes, proveByPowerCuts)).toMatch(
      /a write without its event|GET .events.*: 410/,
    );
  });

  test("stores no keys for the plants of a bulk", async () => {
    const changes = [
      {
        file: "domain/rules.ts",
        text: "if (key && keyRow) {",
        replacement: "if (key && keyRow && !key.isInBulk) {",
      },
    ];

    expect(await findFaults(changes, proveByPowerCuts)).toMatch(/created again: |duplicated: /);
  });

  test("does not sync the folder of a backup", async () => {
    const changes = [
      {
        file: "storage/durable-file.ts",
        text: "removeLeftover(from);\n  syncFolderOf(to);",
        replacement: "removeLeftover(from);",
      },
    ];

    const faults = await findFaults(changes, (program) => cutPower("backup", program));

    expect(faults).toMatch(/: none/);
  });
});

describe("faults find a build that", () => {
  /** A sync fails under load, or all from that one on. The real program gets through it. */
  async function proveByFaults(program: string, isLasting: boolean): Promise<string[]> {
    const failing = {
      scene: "load",
      failure: { kinds: ["sync"], error: "EIO" },
      nth: 1,
      isLasting,
      isKilled: true,
    } as const;
    const faults: string[] = [];
    // A flaw shows only if the last commit before the kill is one that fails.
    for (let seed = 1; seed <= 20 && faults.length === 0; seed++) {
      expect((await inject({ ...failing, seed })).faults).toEqual([]);
      faults.push(...(await inject({ ...failing, seed, program })).faults);
    }
    return faults;
  }

  test("confirms a write whose sync failed", async () => {
    const changes = [
      {
        file: "storage/sqlite/writer.ts",
        text: "      commit.run();\n",
        replacement:
          '      try { commit.run(); } catch { if (database.inTransaction) database.run("ROLLBACK"); }\n',
      },
    ];

    const faults = await findFaults(changes, (program) => proveByFaults(program, false));

    expect(faults).toMatch(/lost: /);
  });

  test("says that nothing is left of a failed commit", async () => {
    const changes = [
      {
        file: "storage/sqlite/writer.ts",
        text: "throw isWritten ? mapCommitError(error) : error;",
        replacement: "throw error;",
      },
    ];

    const faults = await findFaults(changes, (program) => proveByFaults(program, true));

    expect(faults).toMatch(/after a kill: back again: /);
  });
});

test.skipIf(skipsUnless(hasHaproxy, "not installed: haproxy"))(
  "failover finds that a primary that does not wait for its standby loses writes",
  async () => {
    const trial = await FailoverTrial.start();
    try {
      await trial.waitForStandby(false);

      const { faults } = await trial.run("cut off", 1);

      expect(faults.join("\n")).toMatch(/^lost: /m);
    } finally {
      await trial.stop();
    }
  },
);
