/** What a good engineer would write by hand: a framework with schemas on SQLite. */
import { Database } from "bun:sqlite";
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { runToEnd } from "../process/children.ts";
import { type Contender, numbersUpTo, tag, user } from "./contender.ts";
import { bunPath, findNode, readPackageVersion, serversDirectory } from "./paths.ts";
import { describePlantAction } from "./plants-over-http.ts";

interface HandWritten {
  readonly name: "fastify" | "hono" | "elysia";
  readonly summary: string;
  readonly server: string;
  readonly runtime: string | undefined;
  readonly isForHeadlines?: boolean;
  readonly readVersion: () => Promise<string>;
}

export const fastify = createHandWritten({
  name: "fastify",
  summary: "Fastify + better-sqlite3 on Node, WAL, synchronous=FULL, one commit a write, log off",
  server: "fastify-server.mjs",
  runtime: findNode(),
  async readVersion() {
    const output = await runToEnd({ command: [findNode() ?? "node", "--version"] });
    const framework = await readPackageVersion("fastify");
    const engine = await readPackageVersion("better-sqlite3");
    return `${framework}, better-sqlite3 ${engine}, Node ${output.standardOutput.trim()}`;
  },
});

export const hono = createOnBun("hono", "Hono + bun:sqlite with its bearer and valibot middleware");
export const elysia = createOnBun("elysia", "Elysia + bun:sqlite with its compiled schemas");

/** On Plant Store's own runtime; in the headline scenarios only, or the run would take too long. */
function createOnBun(name: "hono" | "elysia", what: string): Contender {
  return createHandWritten({
    name,
    summary: `${what}, a cache of tokens, WAL, synchronous=FULL, one commit a write, log off`,
    server: `${name}-server.mjs`,
    runtime: bunPath,
    isForHeadlines: true,
    readVersion: async () => `${await readPackageVersion(name)} on Bun ${Bun.version}`,
  });
}

function createHandWritten(about: HandWritten): Contender {
  const { name, summary, runtime, isForHeadlines = false, readVersion } = about;
  const command = [runtime ?? "node", join(serversDirectory, about.server)];
  return {
    name,
    summary,
    deletesPerSecondMax: 25_000,
    readyPath: "/healthz",
    isEcho: false,
    isForHeadlines,
    findObstacle: () => (runtime === undefined ? "Node is not installed" : undefined),
    readVersion,
    async prepare(directory) {
      const output = await runToEnd({
        command: [...command, "0", databasePath(directory), "--migrate-only"],
      });
      if (output.exitCode !== 0) throw new Error(`${name} cannot start: ${output.standardError}`);
      const token = `token_${randomBytes(24).toString("hex")}`;
      const hash = createHash("sha256").update(token).digest("hex");
      withDatabase(directory, (database) => {
        database.query("INSERT INTO tokens (hash, garden) VALUES (?1, ?2)").run(hash, user);
      });
      return token;
    },
    seed(directory, count) {
      withDatabase(directory, (database) => {
        database
          .query(`${numbersUpTo(count)}
            INSERT INTO plants (garden, id, name, tag)
            SELECT ?1, number, 'Plant ' || number, ?2 FROM numbers`)
          .run(user, tag);
      });
    },
    describeStart: (directory, port) => ({
      command: [...command, String(port), databasePath(directory)],
      environment: { NODE_ENV: "production" },
    }),
    describeAction: describePlantAction,
  };
}

function databasePath(directory: string): string {
  return join(directory, "hand-written.db");
}

function withDatabase(directory: string, work: (database: Database) => void): void {
  const database = new Database(databasePath(directory), { readwrite: true });
  try {
    database.run("PRAGMA synchronous = OFF");
    database.transaction(() => work(database))();
    database.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}
