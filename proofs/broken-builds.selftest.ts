/** Builds that are broken on purpose fail the proofs. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { changeProgram, type Edit } from "../testing/changed-program.ts";
import { skipsUnless } from "../testing/skipping.ts";
import { Deployment } from "./deployment.ts";
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

/** Returns what a proof finds wrong with a program. */
type Find = (program: string) => Promise<readonly string[]>;

function broken(what: string, find: Find, found: RegExp, ...edits: readonly Edit[]): void {
  test(`a build that ${what}`, async () => {
    using changed = changeProgram(...edits);
    expect((await find(changed.program)).join("\n")).toMatch(found);
  });
}

const byKills =
  (...ends: Moment[]): Find =>
  async (program) =>
    (await live({ seed: 6, threads: 1, isSecure: false, ends, program })).faults;

const byHistories =
  (engine: "sqlite" | "postgres", threads: readonly number[]): Find =>
  async (program) => {
    const deployment = await Deployment.start({ engine, threads }, program);
    const found: string[] = [];
    // Each flaw shows in one history of a few.
    for (let seed = 1; seed <= 200 && found.length === 0; seed++) {
      found.push(...(await tryHistory(deployment, seed, "none")).faults);
    }
    await deployment.stop();
    return found;
  };

const byPowerCuts: Find = async (program) =>
  (await cutRecording({ seed: 7, writes: 120, program }, 40)).faults;

const byBackupCuts: Find = (program) => cutPower("backup", program);

const byFaults =
  (isLasting: boolean): Find =>
  async (program) => {
    const failure = { kinds: ["sync"], error: "EIO" } as const;
    const failing = { scene: "load", failure, nth: 1, isLasting, isKilled: true } as const;
    const found: string[] = [];
    // A flaw shows only if the last commit before the kill is one that fails.
    for (let seed = 1; seed <= 20 && found.length === 0; seed++) {
      expect((await inject({ ...failing, seed })).faults).toEqual([]);
      found.push(...(await inject({ ...failing, seed, program })).faults);
    }
    return found;
  };

const bySoak: Find = async (program) => {
  const { heapBytesPerResponse } = await soak({ ...shortRun, program });
  return heapBytesPerResponse > shortRun.heapBytesPerResponseMax ? ["the heap grew"] : [];
};

const byHeads: Find = async (program) =>
  (await tryCrowd("HEADs of 1,000 plants", "sqlite, 1 thread", program)).faults;

const writer = "storage/sqlite/writer.ts";
const openFile = "storage/sqlite/open.ts";
const later = (text: string): Edit => [writer, text, `setTimeout(() => ${text.slice(0, -1)}, 1);`];

broken(
  "confirms writes before they are committed",
  byKills("first write", "load"),
  /^lost: /m,
  [writer, "begin.run();", "if (!database.inTransaction) begin.run();"],
  [writer, "commit.run();", "setTimeout(() => commit.run(), 1_000);"],
);
broken("closes connections at once when it stops", byKills("stop"), /^cut short: /m, [
  "process/thread.ts",
  "stop(false)",
  "stop(true)",
]);
broken(
  "shows a cached list after a commit that other lists show",
  byHistories("sqlite", [1]),
  /no order explains/,
  ["storage/sqlite/versions.ts", "count % 2 === 0 ? count : undefined", "count >> 1"],
  ["storage/sqlite/worker.ts", "    end();", "Bun.sleepSync(5); end();"],
);
broken(
  "compares a precondition before the write, not in it",
  byHistories("postgres", [2]),
  /no order explains/,
  [
    "domain/plants.ts",
    'const put = { kind: "put", ...this.#writeBase(caller), ...plant, preconditions } as const;',
    `const found = await this.get(caller, id).catch(() => undefined);
      const { ifMatch, ifNoneMatch } = preconditions ?? {};
      if (ifMatch && !(found && ifMatch.includes(contentHash(found)))) throw preconditionFailed();
      if (ifNoneMatch && found) throw preconditionFailed();
      const put = { kind: "put", ...this.#writeBase(caller), ...plant } as const;`,
  ],
  ["domain/plants.ts", '} from "./plant.ts";', 'contentHash } from "./plant.ts";'],
);
const storeEvents = 'queryFor(client, storeEventsStatement, events, "garden", ...eventNames)';
broken(
  "stores events in a second transaction on PostgreSQL",
  byHistories("postgres", [1, 1]),
  /no order explains/,
  ["storage/postgres/group-transaction.ts", `${storeEvents},`, ""],
  [
    "storage/postgres/group-transaction.ts",
    'if (command !== "COMMIT")',
    `if (command === "COMMIT") await ${storeEvents}; else`,
  ],
);
broken("serves requests first come, first served", byHeads, / took \d+ ms|the quiet user got/, [
  "limits/fair-queue.ts",
  "push(garden: string, item: Item): void {",
  'push(_garden: string, item: Item): void {\nconst garden = "";',
]);
const duration = "const durationMs = this.service.now() - this.startedAtMs;";
broken("keeps a kilobyte of each request", bySoak, /the heap grew/, [
  "http/exchange.ts",
  duration,
  `${duration} ((globalThis as any).leaked ??= []).push({ at: new Array(150).fill(0) });`,
]);
broken("syncs only at checkpoints", byPowerCuts, /lost: |GET .plants.*: 401/, [
  openFile,
  "PRAGMA synchronous = FULL",
  "PRAGMA synchronous = NORMAL",
]);
broken("does not sync the folders that it makes", byPowerCuts, /GET .plants.*: 401/, [
  openFile,
  "syncFolderOf(made);",
  ";",
]);
broken(
  "stores a key in a transaction after its plant",
  byPowerCuts,
  /created again: |duplicated: |miscounted: /,
  later("storeKey.run(garden, toBytes(rowKey), entries, expiresAtMs);"),
);
broken(
  "stores events in a second transaction",
  byPowerCuts,
  /a write without its event|GET .events.*: 410/,
  later("storeEvent.run(garden, seq, atMs, type, user, plant.id, plant.name, plant.tag);"),
);
broken("stores no keys for the plants of a bulk", byPowerCuts, /created again: |duplicated: /, [
  "domain/rules.ts",
  "if (key && keyRow) {",
  "if (key && keyRow && !key.isInBulk) {",
]);
broken("does not sync the folder of a backup", byBackupCuts, /: none/, [
  "storage/durable-file.ts",
  "removeLeftover(from);\n  syncFolderOf(to);",
  "removeLeftover(from);",
]);
broken("confirms a write whose sync failed", byFaults(false), /lost: /, [
  writer,
  "      commit.run();\n",
  `      try { commit.run(); } catch { if (database.inTransaction) database.run("ROLLBACK"); }\n`,
]);
broken(
  "says that nothing is left of a failed commit",
  byFaults(true),
  /after a kill: back again: /,
  [writer, "throw isWritten ? mapCommitError(error) : error;", "throw error;"],
);

test.skipIf(skipsUnless(hasHaproxy, "not installed: haproxy"))(
  "a primary that does not wait for its standby loses writes, and the audit finds it",
  async () => {
    const trial = await FailoverTrial.start();
    try {
      await trial.waitForStandby(false);
      expect((await trial.run("cut off", 1)).faults.join("\n")).toMatch(/^lost: /m);
    } finally {
      await trial.stop();
    }
  },
);
