/** What a good engineer would write by hand: a framework with schemas, on SQLite. */
import { Database } from "bun:sqlite";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { bunPath, readPeerVersion, serversDirectory } from "../paths.ts";
import { runToEnd } from "../process/children.ts";
import {
  type ActionName,
  type Contender,
  describeAction,
  gardenName,
  plantsStatement,
} from "./contender.ts";

/** None of them has keys, a PUT or a bulk. */
const known = new Set<ActionName>(["list", "list-anywhere", "list-all", "create", "delete"]);
const durable = "WAL, synchronous=FULL, one commit per write, log off";
const nodePath = Bun.which("node") ?? undefined;

export const fastify = createHandWritten(
  "fastify",
  `Fastify and better-sqlite3 on Node, ${durable}`,
  nodePath,
  async () => {
    const node = await runToEnd({ command: [nodePath ?? "node", "--version"] });
    const engine = await readPeerVersion("better-sqlite3");
    return `better-sqlite3 ${engine}, Node ${node.standardOutput.trim()}`;
  },
);
export const hono = createOnBun("hono", "Hono with its bearer and valibot middleware");
export const elysia = createOnBun("elysia", "Elysia with its compiled schemas");

/** On Plant Store's own runtime. */
function createOnBun(name: "hono" | "elysia", what: string): Contender {
  const summary = `${what}, bun:sqlite, a cache of tokens, ${durable}`;
  return createHandWritten(name, summary, bunPath, async () => `Bun ${Bun.version}`);
}

function createHandWritten(
  name: "fastify" | "hono" | "elysia",
  summary: string,
  runtime: string | undefined,
  describeRuntime: () => Promise<string>,
): Contender {
  const command = [runtime ?? "node", join(serversDirectory, `${name}-server.mjs`)];
  return {
    name,
    summary,
    instances: 1,
    deletesPerSecondMax: 25_000,
    readyPath: "/healthz",
    findObstacle: () => (runtime === undefined ? "Node isn't installed" : undefined),
    readVersion: async () => `${await readPeerVersion(name)}, ${await describeRuntime()}`,
    async prepare(directory, size) {
      const database = join(directory, "plants.db");
      const output = await runToEnd({ command: [...command, "0", database, "--migrate-only"] });
      if (output.exitCode !== 0) throw new Error(`${name} can't start: ${output.standardError}`);
      const token = "token_of_the_benchmark";
      const hash = createHash("sha256").update(token).digest("hex");
      changeFile(database, [
        `INSERT INTO tokens (hash, garden) VALUES ('${hash}', '${gardenName(0)}')`,
        plantsStatement(size),
      ]);
      return { directory, database, tokens: [token] };
    },
    describeStart: ({ database }, port) => ({
      command: [...command, String(port), database],
      environment: { NODE_ENV: "production" },
    }),
    describeAction: (action, size) =>
      known.has(action) ? describeAction(action, size) : undefined,
  };
}

/** Runs statements on a file that no service has open; nothing is synced, as nothing must last. */
export function changeFile(path: string, statements: readonly string[]): void {
  const database = new Database(path, { readwrite: true });
  try {
    database.run("PRAGMA synchronous = OFF");
    database.run("PRAGMA cache_size = -262144");
    database.transaction(() => {
      for (const statement of statements) database.run(statement);
    })();
    database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}
