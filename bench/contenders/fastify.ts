/** What a good engineer would write by hand: Fastify with schemas on better-sqlite3. */
import { Database } from "bun:sqlite";
import { createHash, randomBytes } from "node:crypto";
import { join } from "node:path";
import { runToEnd } from "../process/children.ts";
import { type Contender, numbersUpTo, tag, user } from "./contender.ts";
import { findNode, readPackageVersion, serversDirectory } from "./paths.ts";
import { describePlantAction } from "./plants-over-http.ts";

const server = join(serversDirectory, "fastify-server.mjs");

export const fastify: Contender = {
  name: "fastify",
  summary: "Fastify + better-sqlite3 on Node, WAL, synchronous=FULL, one commit a write, log off",
  deletesPerSecondMax: 25_000,
  readyPath: "/healthz",
  isEcho: false,
  findObstacle: () => (findNode() ? undefined : "Node is not installed"),
  async readVersion() {
    const output = await runToEnd({ command: [findNode() ?? "node", "--version"] });
    const framework = await readPackageVersion("fastify");
    const engine = await readPackageVersion("better-sqlite3");
    return `${framework}, better-sqlite3 ${engine}, Node ${output.standardOutput.trim()}`;
  },
  async prepare(directory) {
    const command = [findNode() ?? "node", server, "0", databasePath(directory), "--migrate-only"];
    const output = await runToEnd({ command });
    if (output.exitCode !== 0) throw new Error(`fastify cannot start: ${output.standardError}`);
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
    command: [findNode() ?? "node", server, String(port), databasePath(directory)],
    environment: { NODE_ENV: "production" },
  }),
  describeAction: describePlantAction,
};

function databasePath(directory: string): string {
  return join(directory, "fastify.db");
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
