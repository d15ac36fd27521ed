/** One connection to PostgreSQL: checks its server, names its statements, and notes what breaks it. */
import { Client, type ClientConfig, type QueryResult } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { ConnectionLost, hasState } from "./errors.ts";

/**
 * These apply regardless of the settings of the role, the database and the server:
 * - a commit is confirmed once it's on disk here, and on the standby if the server waits for one,
 *   and a warning that it isn't gets through;
 * - waiting for a lock ends with `statement_timeout`, except in writes, which set a `lock_timeout`;
 * - an instance that vanishes within a transaction doesn't keep its gardens locked;
 * - pages are read in index order, even if the server has no statistics yet, or planned the
 *   statement while the table was small;
 * - a named statement is planned once, and never compiled;
 * - rows that row-level security would hide are an error.
 */
export const settings = {
  client_min_messages: "warning",
  lock_timeout: 0,
  idle_in_transaction_session_timeout: 10_000,
  enable_bitmapscan: "off",
  enable_seqscan: "off",
  plan_cache_mode: "force_generic_plan",
  jit: "off",
  row_security: "off",
};

const oldestVersion = 15;

/**
 * Regardless of the role's default: after a wait for a lock, the rules must see what the other
 * transaction has written.
 */
export const beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED";

/**
 * The session has no such statement, or has it already, because a pooler gave us another session.
 * Nothing was done.
 */
export const unknownStatementStates = ["26000", "42P05"];

export class Connection extends Client {
  #isBroken = false;
  /** The last warning about its standby. Others say nothing about a commit. */
  #warning: unknown;
  /**
   * Whether statements get names, so that the server parses and plans each of them once: that's a
   * third of its work for a group of lists. Only with our `plan_cache_mode`; most poolers drop such
   * settings.
   */
  #hasNames = false;

  constructor(config?: ClientConfig) {
    super(config);
    // Right away: the connection may break before the pool hands it out.
    this.on("error", () => {
      this.#isBroken = true;
    });
    this.on("notice", (notice) => {
      if (notice.routine === "SyncRepWaitForLSN") this.#warning = notice;
    });
  }

  /** Whether it's lost, or was left in the middle of a transaction. */
  get isUnusable(): boolean {
    return this.#isBroken || this.getTransactionStatus() !== "I";
  }

  /** Closes the socket at once; `end` would wait for outstanding responses. */
  cut(): void {
    this.connection.stream.destroy();
  }

  /** There must be few different texts, because the server keeps each of them. */
  async send(text: string, values: readonly unknown[]): Promise<QueryResult> {
    const query = { text, values: [...values] };
    if (!this.#hasNames) return this.query(query);
    try {
      return await this.query({ ...query, name: nameOf(text) });
    } catch (error) {
      if (hasState(error, ...unknownStatementStates)) this.#hasNames = false;
      throw error;
    }
  }

  /**
   * Runs the work, and fails if the server warns about its commit. If somebody cancels a commit
   * while it waits for the standby, the server reports success with only a warning, but a failover
   * would lose the commit.
   */
  async failOnWarning<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#warning = undefined;
    const result = await work();
    if (this.#warning !== undefined) throw this.#warning;
    return result;
  }

  /**
   * Checks the server, and returns the schema that the connection leads to. Fails with
   * `ConnectionLost` if the server is read-only, and with `unavailable` if it doesn't fit in another
   * way. Behind PgBouncer, the settings are PgBouncer's own.
   */
  async checkServer(): Promise<string | undefined> {
    const { rows } = await this.query(
      `SELECT current_setting('transaction_read_only') AS read_only,
         current_setting('synchronous_commit') AS synchronous_commit,
         current_setting('client_min_messages') AS client_min_messages,
         current_setting('plan_cache_mode', true) AS plan_cache_mode,
         current_setting('server_encoding') AS encoding,
         version() AS version, current_schema() AS schema`,
    );
    const server = rows[0] as Record<string, string | null>;
    if (server.read_only !== "off") {
      throw new ConnectionLost("The server takes no writes.", { cause: { code: "READ_ONLY" } });
    }
    const reason = whyUnfit(server);
    if (reason !== undefined) throw new PlantStoreError("unavailable", reason);
    this.#hasNames = server.plan_cache_mode === settings.plan_cache_mode;
    return server.schema ?? undefined;
  }
}

function whyUnfit(server: Readonly<Record<string, string | null>>): string | undefined {
  // With these, a server confirms writes that can still be lost, or doesn't warn about it.
  const unsafe = { synchronous_commit: "off", client_min_messages: "error" };
  for (const [name, value] of Object.entries(unsafe)) {
    if (server[name] !== value) continue;
    return `its ${name} is ${value}, so confirmed writes could be lost: set another with ALTER ROLE`;
  }
  const version = /^PostgreSQL (\d+)/.exec(server.version ?? "")?.[1];
  if (version !== undefined && Number(version) < oldestVersion) {
    return `it is PostgreSQL ${version}, and ${oldestVersion} or later is needed`;
  }
  const isUtf8 = /^utf-?8$/i.test(server.encoding ?? "");
  return isUtf8 ? undefined : `its encoding is ${server.encoding}, and UTF8 is needed`;
}

const names = new Map<string, string>();

/** A hash of the text, so that two versions behind one pooler never share a name. */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `plantstore ${Bun.hash(text).toString(36)}`;
    names.set(text, name);
  }
  return name;
}
