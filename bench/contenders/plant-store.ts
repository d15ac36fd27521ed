/** Plant Store, started as its users start it, with its log on and sent to /dev/null. */
import { join } from "node:path";
import { hashToken, makeToken } from "../../src/auth/opaque-token.ts";
import type { Action } from "../load/action.ts";
import { readVersionOf, rootDirectory } from "../paths.ts";
import { runToEnd } from "../process/children.ts";
import {
  type ActionName,
  type Contender,
  describeAction,
  type Engine,
  gardenName,
  plantsStatement,
  type Size,
} from "./contender.ts";
import { changeFile } from "./hand-written.ts";
import { changeDatabase, makeServerDatabase, serverPid } from "./postgres-server.ts";

export interface Build {
  readonly name: "plant-store" | "one-thread" | "without-events" | "previous";
  /** A checkout in which `npm ci` was run. */
  readonly root: string;
  readonly version: string;
  readonly flags?: readonly string[];
}

const settings: Partial<Record<Build["name"], readonly [summary: string, ...flags: string[]]>> = {
  "one-thread": ["on one thread", "--threads", "1"],
  "without-events": ["without events", "--events", "off"],
};

export async function readBuild(name: Build["name"], root = rootDirectory): Promise<Build> {
  const [, ...flags] = settings[name] ?? [""];
  return { name, root, version: await readVersionOf(root), flags };
}

export function plantStoreOn(engine: Engine, build: Build): Contender {
  const { name, root, version, flags = [] } = build;
  const program = join(root, "bin", "plantstore");
  const isOnPostgres = engine === "postgres";
  return {
    name,
    summary: `${settings[name]?.[0] ?? "default settings"}, its JSON log on`,
    // On PostgreSQL an instance has one thread by default.
    instances: isOnPostgres ? 2 : 1,
    deletesPerSecondMax: isOnPostgres ? 30_000 : 60_000,
    readyPath: isOnPostgres ? "/readyz" : "/healthz",
    readVersion: async () => `${version} on Bun ${Bun.version}`,
    async prepare(directory, size) {
      const database = isOnPostgres ? await makeServerDatabase() : join(directory, "plants.db");
      await makeStore(program, database);
      const tokens = Array.from({ length: size.gardens }, makeToken);
      const statements = [
        ...tokenStatements(engine, tokens),
        plantsStatement(size),
        gardensStatement(isOf05(build)),
      ];
      if (isOnPostgres) await changeDatabase(database, statements);
      else changeFile(database, statements);
      return { directory, database, tokens };
    },
    describeStart: ({ database }, port) => ({
      command: [program, "serve", "--port", String(port), "--log", "json", ...flags],
      environment: { PLANTSTORE_DATABASE: database },
      directory: root,
    }),
    describeAction: (action, size) => describeOwnAction(build, action, size),
    databasePid: () => (isOnPostgres ? serverPid() : undefined),
  };
}

/** 0.5 had no counters and no PUT, and took many plants at another path. */
function isOf05({ name, version }: Build): boolean {
  return name === "previous" && version.startsWith("0.");
}

function describeOwnAction(build: Build, name: ActionName, size: Size) {
  // It's there to be compared with creates that store an event.
  if (build.name === "without-events" && name !== "create") return undefined;
  const current = describeAction(name, size);
  const takesLines = build.name === "previous" && Number.parseInt(build.version, 10) < 2;
  const action = name === "bulk" && takesLines ? toJsonLines(current) : current;
  if (!isOf05(build)) return action;
  if (name === "put") return undefined;
  return name === "bulk" ? { ...action, path: "/plants" } : action;
}

/** Many plants as versions before 2.0 took them. */
function toJsonLines(action: Action): Action {
  const plants: object[] = JSON.parse(action.body ?? "[]");
  return {
    ...action,
    headers: { ...action.headers, "Content-Type": "application/jsonl" },
    body: plants.map((plant) => `${JSON.stringify(plant)}\n`).join(""),
  };
}

/** The command makes the tables. What they hold goes straight into them, to save time. */
export async function makeStore(program: string, database: string): Promise<void> {
  const output = await runToEnd({
    command: [program, "token", "create", "setup"],
    environment: { PLANTSTORE_DATABASE: database },
  });
  if (output.exitCode !== 0) throw new Error(`Plant Store made no store: ${output.standardError}`);
}

const tokensPerStatement = 500;

function tokenStatements(engine: Engine, tokens: readonly string[]): string[] {
  const isOnPostgres = engine === "postgres";
  const rows = tokens.map((token, index) => {
    const name = gardenName(index);
    const position = isOnPostgres ? `, ${index + 10}` : "";
    return `('${name}', '${hashToken(token)}', '${name}', '${name}', 'write', '', 0${position})`;
  });
  const columns = `id, hash, "user", garden, scope, note, created_at_ms`;
  const statements: string[] = [];
  for (let from = 0; from < rows.length; from += tokensPerStatement) {
    const values = rows.slice(from, from + tokensPerStatement).join(", ");
    const position = isOnPostgres ? ", position" : "";
    statements.push(`INSERT INTO tokens (${columns}${position}) VALUES ${values}`);
  }
  return statements;
}

function gardensStatement(is05: boolean): string {
  const [columns, counts] = is05 ? ["", ""] : [", plants, keys", ", count(*), 0"];
  return `
    INSERT INTO gardens (garden, last_id${columns})
    SELECT garden, max(id)${counts} FROM plants GROUP BY garden`;
}
