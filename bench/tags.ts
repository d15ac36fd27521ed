/**
 * `npm run bench:tags -- [PLANTS] [ROUNDS]`: lists by tag in a small garden and in a large one, what their
 * index costs creates, and how long its migration takes on a large file of 0.4.
 */
import { randomInt } from "node:crypto";
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { firstPlantNumber, numbersUpTo, user } from "./contenders/contender.ts";
import { bunPath, rootDirectory } from "./contenders/paths.ts";
import { databasePath, plantStore, withDatabase } from "./contenders/plant-store.ts";
import { describePlantAction } from "./contenders/plants-over-http.ts";
import { type Action, slotMark } from "./load/action.ts";
import { jsonBody } from "./load/answer-check.ts";
import { say, showProgress } from "./output.ts";
import { medianRound } from "./parts/median.ts";
import { type Round, Seat } from "./parts/seat.ts";
import { killAllChildren, startChild } from "./process/children.ts";
import { watchResidentMemory } from "./process/usage.ts";
import { Workspace } from "./process/workspace.ts";
import { renderTable } from "./report/text-table.ts";

const largePlants = Number(process.argv[2] ?? 10_000_000);
const smallPlants = 10_000;
/** The garden that creates go to. */
const createPlants = Math.min(largePlants, 1_000_000);
const connections = 64;
const rounds = Number(process.argv[3] ?? 7);
const warmUpSeconds = 1;
const roundSeconds = 3;
/** By then all threads of a service that answers are up. */
const threadsUpMs = 3_000;
const listTimesMax = 1.25;
const indexCostMax = 0.08;
const listedPlants = 20;
/** So many that a round asks for hardly any list twice, and none comes from the cache. */
const queries = 200_000;

const kinds = [
  { title: "common tag, first page", tag: "common", isFirstPage: true },
  { title: "common tag, anywhere", tag: "common", isFirstPage: false },
  { title: "rare tag, anywhere", tag: "rare", isFirstPage: false },
] as const;
type Kind = (typeof kinds)[number];
/** Half of the plants have common tags, each 1 % of the garden; the others tags of 100 plants. */
const commonTags = 50;
const rareTagPlants = 100;

interface Contender {
  readonly title: string;
  readonly seat: Seat;
  readonly action: Action;
  readonly rounds: Round[];
}

const workspace = new Workspace();
try {
  const large = await prepare(largePlants, { isOld: true });
  const migration = await migrate(large.directory);
  const lists = await measureLists(large);
  workspace.discard(large.directory);
  const creates = await measureCreates();
  const plants = createPlants.toLocaleString("en");
  say(`${lists}

Lists of ${listedPlants}. Half of the plants have a common tag, which 1 % of the garden has, the others a rare one,
which ${rareTagPlants} plants have. First pages come from the cache; lists anywhere, after some plant, hardly ever.

${creates}

In a garden of ${plants} plants; both are this build, and one has lost the index.
`);
  say(migration);
} finally {
  killAllChildren();
  workspace.remove();
}

async function measureLists(large: Prepared): Promise<string> {
  const small = await prepare(smallPlants);
  const seats = [await start(small), await start(large)];
  const rows: string[][] = [];
  for (const kind of kinds) {
    const contenders = [small, large].map(
      ({ directory, token, plants }, index): Contender => ({
        title: `${kind.title}, ${plants.toLocaleString("en")} plants`,
        seat: seats[index] as Seat,
        action: describeList(directory, token, kind, plants),
        rounds: [],
      }),
    );
    const [base, other] = await takeTurns(contenders);
    const ratio = (base?.answersPerSecond ?? 0) / (other?.answersPerSecond ?? 0);
    rows.push(renderRow(contenders[0], base, ""));
    rows.push(renderRow(contenders[1], other, `${ratio.toFixed(2)} ×`, ratio <= listTimesMax));
  }
  for (const seat of seats) await seat.child.stop();
  workspace.discard(small.directory);
  return renderTable(header("lists by tag", "cost", `≤ ${listTimesMax} ×`), rows);
}

async function measureCreates(): Promise<string> {
  const template = await prepare(createPlants);
  const rows: string[][] = [];
  for (const [title, describe] of [
    ["one tag", (token: string) => describePlantAction("create", token, 0)],
    ["1,000 tags", describeTaggedCreate],
  ] as const) {
    const contenders: Contender[] = [];
    for (const hasIndex of [false, true]) {
      const directory = workspace.copyDirectory(template.directory, "create");
      const seat = await Seat.start(plantStore, directory);
      // Not before all threads have prepared their lists by tag. None is asked for here.
      await Bun.sleep(threadsUpMs);
      if (!hasIndex) {
        withDatabase(directory, (database) => database.run("DROP INDEX plants_by_tag"));
      }
      await seat.rest();
      const action = describe(template.token, directory);
      contenders.push({
        title: `${title}, ${hasIndex ? "with" : "without"} it`,
        seat,
        action,
        rounds: [],
      });
    }
    const [without, having] = await takeTurns(contenders);
    const cost = 1 - (having?.answersPerSecond ?? 0) / (without?.answersPerSecond ?? 0);
    rows.push(renderRow(contenders[0], without, ""));
    rows.push(renderRow(contenders[1], having, percent(cost), cost <= indexCostMax));
    for (const { seat } of contenders) {
      await seat.child.stop();
      workspace.discard(seat.directory);
    }
  }
  return renderTable(header("creates, the index", "cost", `≤ ${percent(indexCostMax)}`), rows);
}

/** By a command that opens the file. The service does the same when it starts. */
async function migrate(directory: string): Promise<string> {
  showProgress("the migration");
  const path = databasePath(directory);
  const bytesBefore = statSync(path).size;
  const logPath = join(directory, "migration.log");
  const startedAtMs = performance.now();
  const child = startChild({
    command: [bunPath, join(rootDirectory, "src/main.ts"), "token", "list", "--database", path],
    logPath,
  });
  const endWatch = watchResidentMemory(child.pid);
  if ((await child.exited) !== 0) throw new Error(await Bun.file(logPath).text());
  const seconds = (performance.now() - startedAtMs) / 1_000;
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;
  return (
    `The migration of a file of 0.4 with ${largePlants.toLocaleString("en")} plants took ${seconds.toFixed(1)} s and ` +
    `${endWatch().toFixed(0)} MB of memory.\n` +
    `The file grew from ${megabytes(bytesBefore)} to ${megabytes(statSync(path).size)}.`
  );
}

interface Prepared {
  readonly directory: string;
  readonly token: string;
  readonly plants: number;
}

/** Straight into the file; without the index, if it is to be one of 0.4. */
async function prepare(plants: number, { isOld = false } = {}): Promise<Prepared> {
  showProgress(`preparing ${plants.toLocaleString("en")} plants`);
  const directory = workspace.makeDirectory("tags");
  const token = await plantStore.prepare(directory);
  withDatabase(directory, (database) => {
    if (isOld) {
      database.run("DROP INDEX plants_by_tag");
      database.run("ALTER TABLE idempotency_hashes DROP COLUMN lines");
      database.run("PRAGMA user_version = 2");
    }
    database
      .query(`${numbersUpTo(plants)}
        INSERT INTO plants (garden, id, name, tag)
        SELECT ?1, number, 'Plant ' || number, CASE number % 2
          WHEN 0 THEN printf('common-%06d', number / 2 % ${commonTags})
          ELSE printf('rare-%06d', number / 2 % ${countRareTags(plants)}) END
        FROM numbers`)
      .run(user);
    database
      .query("INSERT INTO gardens (garden, last_id) VALUES (?1, ?2)")
      .run(user, firstPlantNumber + plants - 1);
  });
  return { directory, token, plants };
}

function countRareTags(plants: number): number {
  return plants / 2 / rareTagPlants;
}

async function start({ directory }: Prepared): Promise<Seat> {
  const seat = await Seat.start(plantStore, directory);
  await seat.rest();
  return seat;
}

function describeList(directory: string, token: string, kind: Kind, plants: number): Action {
  const tags = kind.tag === "common" ? commonTags : countRareTags(plants);
  // Not after the last plants, so that enough are left to list.
  const span = Math.floor(plants * 0.7);
  const lines = Array.from({ length: queries }, () => {
    const tag = `${kind.tag}-${String(randomInt(tags)).padStart(6, "0")}`;
    return kind.isFirstPage ? tag : `${tag}&after=${firstPlantNumber + randomInt(span)}`;
  });
  const path = join(directory, "queries.txt");
  writeFileSync(path, `${lines.join("\n")}\n`);
  return {
    ...describePlantAction("list-20", token, plants),
    path: `/plants?limit=${listedPlants}&tag=${slotMark}`,
    slot: { kind: "line", path },
    findFault: jsonBody((list) =>
      Array.isArray(list) && list.length === listedPlants ? undefined : "the list is not of 20",
    ),
  };
}

/** Each create gets another of 1,000 tags, so that writes are spread over the index. */
function describeTaggedCreate(token: string, directory: string): Action {
  // Nine characters, as all slots of bodies have.
  const tags = Array.from({ length: 1_000 }, () => `tag-${randomInt(10_000, 99_999)}`);
  const path = join(directory, "tags.txt");
  writeFileSync(path, `${tags.join("\n")}\n`);
  return {
    ...describePlantAction("create", token, 0),
    body: JSON.stringify({ name: "Plant", tag: slotMark }),
    slot: { kind: "line", path },
    findFault: () => undefined,
  };
}

/** Returns the median round of each. */
async function takeTurns(contenders: readonly Contender[]): Promise<Round[]> {
  // Round 0 warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const { title, seat, action, rounds: measured } of contenders) {
      showProgress(`${title}: round ${round} of ${rounds}`);
      await seat.wake();
      const mix = [{ action, weight: 1 }];
      if (round === 0) await seat.check(mix);
      const durationSeconds = round === 0 ? warmUpSeconds : roundSeconds;
      const figures = await seat.drive(mix, { connections, durationSeconds });
      if (round > 0) measured.push(figures);
      await seat.rest();
    }
  }
  return contenders.map(({ rounds: measured }) => medianRound(measured));
}

function header(what: string, cost: string, target: string): string[] {
  const figures = ["answers/s", "p50 ms", "p99 ms", "CPU µs", "faults", "others"];
  return [`${what}, ${connections} connections`, ...figures, cost, target];
}

function renderRow(
  contender: Contender | undefined,
  round: Round | undefined,
  cost: string,
  isMet?: boolean,
): string[] {
  if (!contender || !round) return [];
  return [
    contender.title,
    Math.round(round.answersPerSecond).toLocaleString("en"),
    round.p50Ms.toFixed(2),
    round.p99Ms.toFixed(2),
    round.cpuMicrosecondsPerAnswer.toFixed(0),
    String(round.faults),
    percent(round.othersCpuShare),
    cost,
    isMet === undefined ? "" : isMet ? "yes" : "NO",
  ];
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
