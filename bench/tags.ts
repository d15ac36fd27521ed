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
  const [smallSeat, largeSeat] = [await start(small), await start(large)];
  const rows: string[][] = [];
  for (const kind of kinds) {
    const enter = ({ directory, token, plants }: Prepared, seat: Seat): Contender => ({
      title: `${kind.title}, ${plants.toLocaleString("en")} plants`,
      seat,
      action: describeList(directory, token, kind, plants),
    });
    const [base, other] = await takeTurns(enter(small, smallSeat), enter(large, largeSeat));
    const ratio = base.answersPerSecond / other.answersPerSecond;
    rows.push(renderRow(base));
    rows.push([...renderRow(other), `${ratio.toFixed(2)} ×`, verdict(ratio <= listTimesMax)]);
  }
  await smallSeat.child.stop();
  await largeSeat.child.stop();
  return renderTable(header("lists by tag", `≤ ${listTimesMax} ×`), rows);
}

async function measureCreates(): Promise<string> {
  const template = await prepare(createPlants);
  const rows: string[][] = [];
  for (const [tags, describe] of [
    ["one tag", (token: string) => describePlantAction("create", token, 0)],
    ["1,000 tags", describeTaggedCreate],
  ] as const) {
    const enter = async (hasIndex: boolean): Promise<Contender> => {
      const directory = workspace.copyDirectory(template.directory, "create");
      const seat = await Seat.start(plantStore, directory);
      // Not before all threads have prepared their lists by tag. None is asked for here.
      await Bun.sleep(threadsUpMs);
      if (!hasIndex) {
        withDatabase(directory, (database) => database.run("DROP INDEX plants_by_tag"));
      }
      await seat.rest();
      const title = `${tags}, ${hasIndex ? "with" : "without"} the index`;
      return { title, seat, action: describe(template.token, directory) };
    };
    const contenders = [await enter(false), await enter(true)] as const;
    const [without, having] = await takeTurns(...contenders);
    const cost = 1 - having.answersPerSecond / without.answersPerSecond;
    rows.push(renderRow(without));
    rows.push([...renderRow(having), percent(cost), verdict(cost <= indexCostMax)]);
    for (const { seat } of contenders) await seat.child.stop();
  }
  return renderTable(header("creates", `≤ ${percent(indexCostMax)}`), rows);
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

interface Median extends Round {
  readonly title: string;
}

async function takeTurns(base: Contender, other: Contender): Promise<[Median, Median]> {
  const entries = [base, other].map((contender) => ({ ...contender, measured: [] as Round[] }));
  // Round 0 warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const { title, seat, action, measured } of entries) {
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
  const medians = entries.map(({ title, measured }) => ({ title, ...medianRound(measured) }));
  return medians as [Median, Median];
}

function header(what: string, target: string): string[] {
  const figures = ["answers/s", "p50 ms", "p99 ms", "CPU µs", "faults", "others", "cost"];
  return [`${what}, ${connections} connections`, ...figures, target];
}

function renderRow(median: Median): string[] {
  return [
    median.title,
    Math.round(median.answersPerSecond).toLocaleString("en"),
    median.p50Ms.toFixed(2),
    median.p99Ms.toFixed(2),
    median.cpuMicrosecondsPerAnswer.toFixed(0),
    String(median.faults),
    percent(median.othersCpuShare),
  ];
}

function verdict(isMet: boolean): string {
  return isMet ? "yes" : "NO";
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`;
}
