/**
 * Connects to PostgreSQL at one address, with the settings that storage's promises depend on, and
 * checks every new connection.
 */
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { Client, type ClientBase, type ClientConfig, Pool, type QueryResult, types } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { deadline } from "../../shared/promises.ts";
import type { ConnectionLimits } from "../storage.ts";
import { ConnectionLost, codeOf, hasState } from "./errors.ts";
import type { DatabaseUrl } from "./url.ts";

/** How connections are made. The first one of a process finds out; all others follow. */
export interface ConnectionMode {
  readonly isEncrypted: boolean;
  /** Whether the server accepts startup options. PgBouncer may not. */
  readonly takesOptions: boolean;
  /**
   * Where the tables are, pinned as the search path: the first schema of the role's own search
   * path. Absent if that leads nowhere, and for the first connection.
   */
  readonly schema: string | undefined;
}

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
const settings = {
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
const int8 = 20;

/**
 * Makes the first connection of a process and runs `setUp` on it, with the role's own search path:
 * that may lead to a store in a schema other than its first.
 */
export async function findMode(
  url: DatabaseUrl,
  limits: ConnectionLimits,
  setUp: (client: ClientBase) => Promise<void>,
): Promise<ConnectionMode> {
  const isEncrypted = url.tls !== "disable";
  const preferred = { isEncrypted, takesOptions: true, schema: undefined };
  const [client, mode] = await connectFirst(url, limits, preferred);
  try {
    await setUp(client);
    return mode;
  } finally {
    client.end().catch(() => {});
  }
}

async function connectFirst(
  url: DatabaseUrl,
  limits: ConnectionLimits,
  mode: ConnectionMode,
): Promise<[Client, ConnectionMode]> {
  const client = new Client(clientConfig(url, limits, mode));
  client.on("error", () => {});
  try {
    const connecting = client.connect().then(() => checkServer(client));
    return [client, { ...mode, schema: await inTime(client, limits, connecting) }];
  } catch (error) {
    cut(client);
    const next = fallback(url, mode, error);
    if (next === undefined) throw error;
    return connectFirst(url, limits, next);
  }
}

/** Another way to reach the server, if the failure suggests that it doesn't accept this one. */
function fallback(
  url: DatabaseUrl,
  mode: ConnectionMode,
  error: unknown,
): ConnectionMode | undefined {
  if (mode.takesOptions && hasState(error, "08P01", "0A000", "42704")) {
    return { ...mode, takesOptions: false };
  }
  const isTlsTrouble = !(error instanceof PlantStoreError) && codeOf(error) === undefined;
  if (url.tls === "prefer" && mode.isEncrypted && isTlsTrouble) {
    return { ...mode, isEncrypted: false };
  }
  return undefined;
}

/** Connections that have reported an error. */
const brokenClients = new WeakSet<ClientBase>();

/** The last warning of each connection about its standby. Others say nothing about a commit. */
const warnings = new WeakMap<ClientBase, unknown>();

/**
 * Fails if the server warns about a commit. If somebody cancels a commit while it waits for the
 * standby, the server reports success with only a warning, but a failover would lose the commit.
 */
export async function withoutWarning<Result>(
  client: ClientBase,
  work: () => Promise<Result>,
): Promise<Result> {
  warnings.delete(client);
  const result = await work();
  if (warnings.has(client)) throw warnings.get(client);
  return result;
}

/** Drops every new connection that doesn't fit: a load balancer may lead to any server. */
export function createPool(config: ClientConfig, limits: ConnectionLimits): Pool {
  const pool = new Pool({
    ...config,
    max: limits.poolSize,
    connectionTimeoutMillis: limits.connectTimeoutMs,
    async onConnect(client) {
      // Right away: the connection may break before the pool hands it out.
      client.on("error", () => brokenClients.add(client));
      client.on("notice", (notice) => {
        if (notice.routine === "SyncRepWaitForLSN") warnings.set(client, notice);
      });
      await inTime(client, limits, checkServer(client));
    },
  });
  // Without a listener, a lost idle connection would end the process.
  pool.on("error", () => {});
  return pool;
}

/** Whether the connection is lost, or was left in the middle of a transaction. */
export function isUnusable(client: ClientBase): boolean {
  return brokenClients.has(client) || client.getTransactionStatus() !== "I";
}

/** Cuts the connection if connecting takes too long. */
function inTime<Result>(
  client: ClientBase,
  { connectTimeoutMs }: ConnectionLimits,
  connecting: Promise<Result>,
): Promise<Result> {
  return deadline(connecting, connectTimeoutMs, () => {
    cut(client);
    throw Object.assign(new Error("The server did not respond."), { code: "ETIMEDOUT" });
  });
}

/** Closes the socket at once; `end` would wait for outstanding responses. */
export function cut(client: ClientBase): void {
  // The types of `pg` leave this out.
  const { connection } = client as unknown as { connection: { stream: { destroy(): void } } };
  connection.stream.destroy();
}

export function clientConfig(
  url: DatabaseUrl,
  limits: ConnectionLimits,
  mode: ConnectionMode,
): ClientConfig {
  return {
    host: url.host,
    port: url.port,
    user: url.user,
    password: url.password,
    database: url.database ?? url.user,
    application_name: url.applicationName,
    ssl: mode.isEncrypted && tlsOptions(url),
    ...(mode.takesOptions && { options: startupOptions(limits, mode.schema) }),
    keepAlive: true,
    // Statements that don't need each other's results share one round trip.
    pipeline: true,
    types: {
      // By default, 64-bit integers come as text.
      getTypeParser: ((oid: number, format: "text") =>
        oid === int8 ? BigInt : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
    },
  };
}

/** PGOPTIONS may choose `synchronous_commit` and the search path; our settings come after it. */
function startupOptions({ statementTimeoutMs }: ConnectionLimits, schema?: string): string {
  const ours = { ...settings, statement_timeout: statementTimeoutMs };
  const flags = Object.entries(ours).map(([name, value]) => `-c ${name}=${value}`);
  if (schema !== undefined) {
    const quoted = `"${schema.replaceAll('"', '""')}"`;
    flags.push(`-c search_path=${quoted.replaceAll(/[\\\s]/g, "\\$&")}`);
  }
  return ["-c synchronous_commit=on", process.env.PGOPTIONS ?? "", ...flags].join(" ");
}

/**
 * Checks a new connection, and returns the schema that it leads to. Fails with `ConnectionLost` if
 * the server is read-only, and with `unavailable` if it doesn't fit in another way. Behind
 * PgBouncer, the settings are PgBouncer's own.
 */
export async function checkServer(client: ClientBase): Promise<string | undefined> {
  const { rows } = await client.query(
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
  if (server.plan_cache_mode === settings.plan_cache_mode) named.add(client);
  return server.schema ?? undefined;
}

function whyUnfit(server: Readonly<Record<string, string | null>>): string | undefined {
  // With these, a server confirms writes that can still be lost, or doesn't warn about it.
  const unsafe = { synchronous_commit: "off", client_min_messages: "error" };
  for (const [name, value] of Object.entries(unsafe)) {
    if (server[name] !== value) continue;
    return `its ${name} is ${value}, so confirmed writes could be lost: set another with ALTER ROLE`;
  }
  // Compatible databases number their versions differently.
  const version = /^PostgreSQL (\d+)(?!.*-YB-)/.exec(server.version ?? "")?.[1];
  if (version !== undefined && Number(version) < oldestVersion) {
    return `it is PostgreSQL ${version}, and ${oldestVersion} or later is needed`;
  }
  const isUtf8 = /^utf-?8$/i.test(server.encoding ?? "");
  return isUtf8 ? undefined : `its encoding is ${server.encoding}, and UTF8 is needed`;
}

/**
 * Connections whose statements get names, so that the server parses and plans each statement once:
 * that's a third of its work for a group of lists. Only with our `plan_cache_mode`; most poolers
 * drop such settings.
 */
const named = new WeakSet<ClientBase>();
const names = new Map<string, string>();

/**
 * The session has no such statement, or has it already, because a pooler gave us another session.
 * Nothing was done.
 */
export const nameFailures = ["26000", "42P05"];

/** Regardless of the role's default: the rules rely on seeing what a lock has waited for. */
export const beginWrite = "BEGIN ISOLATION LEVEL READ COMMITTED";

/** There must be few different texts, because the server keeps each of them. */
export async function send(
  client: ClientBase,
  text: string,
  values: readonly unknown[],
): Promise<QueryResult> {
  const query = { text, values: [...values] };
  if (!named.has(client)) return client.query(query);
  try {
    return await client.query({ ...query, name: nameOf(text) });
  } catch (error) {
    if (hasState(error, ...nameFailures)) named.delete(client);
    throw error;
  }
}

/** A hash of the text, so that two versions behind one pooler never share a name. */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `plantstore ${Bun.hash(text).toString(36)}`;
    names.set(text, name);
  }
  return name;
}

/** As in libpq: `require` encrypts and trusts any server, unless `sslrootcert` is given. */
function tlsOptions(url: DatabaseUrl): ConnectionOptions {
  const { tls, rootCertificatePath } = url;
  const authorities =
    rootCertificatePath === undefined ? {} : { ca: readCertificates(rootCertificatePath) };
  const isVerified = tls.startsWith("verify") || (tls === "require" && rootCertificatePath);
  if (!isVerified) return { ...authorities, rejectUnauthorized: false };
  if (tls === "verify-full") return { ...authorities, rejectUnauthorized: true };
  return { ...authorities, rejectUnauthorized: true, checkServerIdentity: () => undefined };
}

function readCertificates(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    throw new PlantStoreError("unavailable", `the sslrootcert file ${path} cannot be read`);
  }
}
