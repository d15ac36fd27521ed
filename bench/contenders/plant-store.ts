/** Plant Store itself, started as its users start it, with its log on and written to /dev/null. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { type ChildWish, runToEnd } from "../process/children.ts";
import { type Contender, firstPlantNumber, numbersUpTo, tag, user } from "./contender.ts";
import { rootDirectory } from "./paths.ts";
import { describePlantAction } from "./plants-over-http.ts";

export const plantStore = createPlantStore("plant-store", rootDirectory);

/** Another build, to compare with: a checkout in which `npm ci` was run. */
export function createPrevious(root: string | undefined): Contender {
  return {
    ...createPlantStore("previous", root ?? rootDirectory),
    findObstacle: () => (root === undefined ? "no checkout was given with --previous" : undefined),
  };
}

function createPlantStore(name: "plant-store" | "previous", root: string): Contender {
  const program = join(root, "bin", "plantstore");
  return {
    name,
    summary: "default settings, its JSON log on and sent to /dev/null",
    deletesPerSecondMax: 60_000,
    readyPath: "/healthz",
    isEcho: false,
    findObstacle: () => undefined,
    async readVersion() {
      const file = Bun.file(join(root, "package.json"));
      return `${((await file.json()) as { version: string }).version} on Bun ${Bun.version}`;
    },
    prepare: (directory) => createToken(program, directory, user),
    seed: (directory, count) => seedGarden(directory, user, count),
    describeStart: (directory, port): ChildWish => ({
      command: [
        ...[program, "serve", "--port", String(port), "--log", "json"],
        ...["--database", databasePath(directory)],
      ],
      directory: root,
    }),
    describeAction: describePlantAction,
  };
}

export function databasePath(directory: string): string {
  return join(directory, "plants.db");
}

/** Also makes the file, with the schema of the version at hand. */
async function createToken(program: string, directory: string, owner: string): Promise<string> {
  const output = await runToEnd({
    command: [program, "token", "create", owner, "--database", databasePath(directory)],
    directory,
  });
  const token = output.standardOutput.trim();
  if (output.exitCode !== 0 || token === "") {
    throw new Error(`Plant Store made no token: ${output.standardError}`);
  }
  return token;
}

/** Straight into the file, because ten million requests would take too long. */
export function seedGarden(directory: string, garden: string, count: number): void {
  withDatabase(directory, (database) => {
    database
      .query(`${numbersUpTo(count)}
        INSERT INTO plants (garden, id, name, tag)
        SELECT ?1, number, 'Plant ' || number, ?2 FROM numbers`)
      .run(garden, tag);
    database
      .query(`INSERT INTO gardens (garden, last_id) VALUES (?1, ?2)
        ON CONFLICT (garden) DO UPDATE SET last_id = excluded.last_id`)
      .run(garden, firstPlantNumber + count - 1);
  });
}

/** Opens the file while no service does; nothing is synced, because nothing of it must last. */
export function withDatabase(directory: string, work: (database: Database) => void): void {
  const database = new Database(databasePath(directory), { readwrite: true });
  try {
    database.run("PRAGMA synchronous = OFF");
    database.run("PRAGMA cache_size = -262144");
    database.transaction(() => work(database))();
    database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}
