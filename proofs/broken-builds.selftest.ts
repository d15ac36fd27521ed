/** Builds that are broken on purpose fail the suites. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { changeProgram, type Edit } from "../test/changed-program.ts";
import { skipsUnless } from "../test/skipping.ts";
import { Deployment } from "./deployment.ts";
import { hasHaproxy } from "./failover/database-proxy.ts";
import { FailoverTrial } from "./failover/prove.ts";
import { type Case, inject, makeCases } from "./faults/fault-trial.ts";
import { tryHistory } from "./histories/trial.ts";
import { tryCrowd } from "./hostile/trial.ts";
import { isInterposable } from "./interposed-io/interposed-io.ts";
import { live, type Moment } from "./kills/prove.ts";
import { cutPower } from "./power-cuts/backup-cuts.ts";
import { PowerCuts, record } from "./power-cuts/power-cut.ts";
import { shortRun, soak } from "./soak/prove.ts";

setDefaultTimeout(300_000);

type Find = (program: string, edits: readonly Edit[]) => Promise<readonly string[]>;
type BrokenBuild = readonly [what: string, found: RegExp, find: Find, ...edits: Edit[]];

const writer = "storage/sqlite/writer.ts";
const storeKey = "storeKey.run(garden, toBytes(rowKey), entries, expiresAtMs);";
const storeEvent = "storeEvent.run(...contentValues(event), garden, seq, atMs, type, user, id);";
/** On SQLite, a millisecond after the commit. */
const logLater: Edit = {
  file: writer,
  text: storeEvent,
  by: `setTimeout(() => ${storeEvent.slice(0, -1)}, 1);`,
};
const batch = "storage/postgres/batch.ts";
const storeEvents =
  "queryFor(client, events, storeEventsStatement, columns(events, ...eventColumns))";
const route = "const route = incoming.route?.path;";

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

const byPowerCuts: Find = async (_, edits) => {
  const [seed, count] = [7, 40];
  const cuts = new PowerCuts(await record({ seed, writes: 120, edits }), count);
  const found: string[] = [];
  for (let index = 0; index < count && found.length === 0; index++) {
    found.push(...(await cuts.examine(index, seed + index)).faults);
  }
  return found;
};

const byFaults =
  (isLasting: boolean): Find =>
  async (program) => {
    const { scene } = (await makeCases()).at(-1) as Case;
    const injection = { scene, failure: { kinds: ["sync"], error: "EIO" }, isLasting } as const;
    expect((await inject({ ...injection, nth: 1 })).faults).toEqual([]);
    return (await inject({ ...injection, nth: 1, program })).faults;
  };

const builds: readonly BrokenBuild[] = [
  [
    "confirms writes before they are committed",
    /^lost: /m,
    byKills("first write", "load"),
    { file: writer, text: "begin.run();", by: "if (!database.inTransaction) begin.run();" },
    { file: writer, text: "commit.run();", by: "setTimeout(() => commit.run(), 1_000);" },
  ],
  [
    "closes connections at once when it stops",
    /^cut short: /m,
    byKills("stop"),
    { file: "server/listener.ts", text: "stop(false)", by: "stop(true)" },
  ],
  [
    "shows a cached list after a commit that other lists show",
    /no order explains/,
    byHistories("sqlite", [1]),
    {
      file: "storage/sqlite/versions.ts",
      text: "count % 2 === 0 ? count : undefined",
      by: "count >> 1",
    },
    { file: "storage/sqlite/worker.ts", text: "    end();", by: "Bun.sleepSync(5); end();" },
  ],
  [
    "compares a precondition before the write, not in it",
    /no order explains/,
    byHistories("postgres", [2]),
    {
      file: "domain/plants.ts",
      text: 'const put = { kind: "put", ...this.#writeBase(caller), ...plant, preconditions } as const;',
      by: `const found = await this.get(caller, id).catch(() => undefined);
        const { ifMatch, ifNoneMatch } = preconditions ?? {};
        if (ifMatch && !(found && ifMatch.includes(contentHash(found)))) throw preconditionFailed();
        if (ifNoneMatch && found) throw preconditionFailed();
        const put = { kind: "put", ...this.#writeBase(caller), ...plant } as const;`,
    },
    {
      file: "domain/plants.ts",
      text: '} from "./plant.ts";',
      by: 'contentHash } from "./plant.ts";',
    },
  ],
  [
    "stores events in a second transaction on PostgreSQL",
    /no order explains/,
    byHistories("postgres", [1, 1]),
    { file: batch, text: `${storeEvents},`, by: "" },
    {
      file: batch,
      text: 'if (command !== "COMMIT")',
      by: `if (command === "COMMIT") await ${storeEvents}; else`,
    },
  ],
  [
    "serves requests first come, first served",
    /took|the quiet user got/,
    async (program) => {
      const options = { leniency: 6, program };
      return (await tryCrowd("HEADs of 1,000 plants", "sqlite, 1 thread", options)).faults;
    },
    {
      file: "async/fair-queue.ts",
      text: "push(garden: string, item: Item): void {",
      by: 'push(_garden: string, item: Item): void {\nconst garden = "";',
    },
  ],
];

/** These need Linux. */
const linuxBuilds: readonly BrokenBuild[] = [
  [
    "keeps a kilobyte of each request",
    /the heap grew/,
    async (program) => {
      const { heapBytesPerResponse } = await soak({ ...shortRun, program });
      return heapBytesPerResponse > shortRun.heapBytesPerResponseMax ? ["the heap grew"] : [];
    },
    {
      file: "http/request-log.ts",
      text: route,
      by: `${route} ((globalThis as any).leaked ??= []).push({ at: new Array(150).fill(0) });`,
    },
  ],
  [
    "syncs only at checkpoints",
    /lost: |GET .plants: 401/,
    byPowerCuts,
    {
      file: "storage/sqlite/open.ts",
      text: "PRAGMA synchronous = FULL",
      by: "PRAGMA synchronous = NORMAL",
    },
  ],
  [
    "does not sync the folder of a backup",
    /: none/,
    (program) => cutPower("backup", program),
    { file: "storage/durable-file.ts", text: "  syncFolderOf(to);", by: "" },
  ],
  [
    "gives a backup its name before it is complete",
    /: (?!none|60)/,
    (program) => cutPower("backup", program),
    { file: "storage/durable-file.ts", text: "const partial = ", by: "const partial = target ||" },
  ],
  [
    "does not sync the folders that it makes",
    /GET .plants: 401/,
    byPowerCuts,
    { file: "storage/sqlite/open.ts", text: "syncFolderOf(made);", by: ";" },
  ],
  [
    "stores a key in a transaction after its plant",
    /another response to|duplicated: |miscounted: /,
    byPowerCuts,
    { file: writer, text: storeKey, by: `setTimeout(() => ${storeKey.slice(0, -1)}, 1);` },
  ],
  ["stores events in a second transaction", /a write without its event/, byPowerCuts, logLater],
  [
    "stores no keys for the plants of a bulk",
    /created again: |duplicated: /,
    byPowerCuts,
    {
      file: "domain/rules.ts",
      text: "if (key && keyRow) {",
      by: "if (key && keyRow && !key.isInBulk) {",
    },
  ],
  [
    "confirms a write whose sync failed",
    /lost: trouble/,
    byFaults(false),
    {
      file: writer,
      text: "      commit.run();\n",
      by: `      try { commit.run(); } catch { if (database.inTransaction) database.run("ROLLBACK"); }\n`,
    },
  ],
  [
    "says that nothing is left of a failed commit",
    /after a kill: back again: trouble/,
    byFaults(true),
    { file: writer, text: "throw isWritten ? mapCommitError(error) : error;", by: "throw error;" },
  ],
];

const isWithoutLinux = skipsUnless(isInterposable, "needs Linux on x64 or arm64");
for (const [listed, isSkipped] of [
  [builds, false],
  [linuxBuilds, isWithoutLinux],
] as const) {
  for (const [what, found, find, ...edits] of listed) {
    test.skipIf(isSkipped)(`a build that ${what} is found`, async () => {
      using broken = changeProgram(edits);
      expect((await find(broken.program, edits)).join("\n")).toMatch(found);
    });
  }
}

test.skipIf(skipsUnless(hasHaproxy, "not installed: haproxy"))(
  "a primary that does not wait for its standby loses writes, and the audit finds it",
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
