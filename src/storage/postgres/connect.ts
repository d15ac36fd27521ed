/** Connects to one PostgreSQL server, with the settings that the promises of storage rest on. */
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { Client, type ClientBase, type ClientConfig, DatabaseError, types } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import type { ConnectionLimits } from "../storage.ts";
import { ConnectionLost, explain, hasState, reasonOf } from "./errors.ts";
import { allowNames } from "./statement.ts";
import { type DatabaseUrl, describeHost, type Host } from "./url.ts";

/** Where to connect, and how. */
export interface Target {
  readonly url: DatabaseUrl;
  readonly limits: ConnectionLimits;
  /** Where the tables are: pinned as the search path once it is known. */
  readonly schema: string | undefined;
}

/** How to reach a server. */
interface Route extends Host {
  readonly isEncrypted: boolean;
  /** Whether it takes startup options. PgBouncer may not. */
  readonly takesOptions: boolean;
}

export interface Server extends Route {
  /** The first of the role's search path; absent if that leads nowhere. */
  readonly schema: string | undefined;
}

/**
 * They hold whatever is set for the role, the database or the server:
 * - a commit is confirmed once it is on disk here, and on the standby where one is waited for, and
 *   a warning that it is not gets through;
 * - `statement_timeout` alone decides how long to wait for a lock;
 * - pages are read in the order of their index, also while the server has no statistics yet, and by
 *   a plan that was made while the table was small;
 * - a named statement is planned once, and never compiled;
 * - rows that row-level security would hide are an error;
 * - arrays may hold nulls.
 */
const settings = {
  client_min_messages: "warning",
  lock_timeout: 0,
  enable_bitmapscan: "off",
  enable_seqscan: "off",
  plan_cache_mode: "force_generic_plan",
  jit: "off",
  row_security: "off",
  array_nulls: "on",
};

const oldestVersion = 15;
const int8 = 20;

export function clientConfig({ url, limits, schema }: Target, route: Route): ClientConfig {
  return {
    host: route.host,
    port: route.port,
    user: url.user,
    password: url.password,
    database: url.database ?? url.user,
    application_name: url.applicationName,
    ssl: route.isEncrypted && tlsOptions(url),
    ...(route.takesOptions && { options: startupOptions(limits, schema) }),
    keepAlive: true,
    // Statements that do not need each other's results share one round trip.
    pipeline: true,
    types: {
      // Without it, integers of 64 bits come as text.
      getTypeParser: ((oid: number, format: "text") =>
        oid === int8 ? BigInt : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
    },
  };
}

/** PGOPTIONS may choose `synchronous_commit` and the search path, and nothing else that is here. */
function startupOptions({ statementTimeoutMs }: ConnectionLimits, schema?: string): string {
  const ours = { ...settings, statement_timeout: statementTimeoutMs };
  const flags = Object.entries(ours).map(([name, value]) => `-c ${name}=${value}`);
  if (schema !== undefined) {
    const quoted = `"${schema.replaceAll('"', '""')}"`;
    flags.push(`-c search_path=${quoted.replaceAll(/[\\\s]/g, "\\$&")}`);
  }
  return ["-c synchronous_commit=on", process.env.PGOPTIONS ?? "", ...flags].join(" ");
}

/** Why no host can be used, in words. Those without a refusal have not responded yet. */
export function noServer(url: DatabaseUrl, refusals: ReadonlyMap<Host, unknown>): PlantStoreError {
  const refused = url.hosts.filter((host) => refusals.has(host));
  const reasons = refused.map((host) => {
    const reason = explain(refusals.get(host), url);
    return url.hosts.length > 1 ? `${describeHost(host)}: ${reason}` : reason;
  });
  const cause = new AggregateError(refusals.values());
  return new PlantStoreError("unavailable", reasons.join("; "), { cause });
}

/** Fails unless the host accepts writes. */
export async function tryHost(target: Target, host: Host): Promise<Server> {
  const isEncrypted = target.url.tls !== "disable";
  let route: Route | undefined = { ...host, isEncrypted, takesOptions: true };
  for (;;) {
    try {
      const schema = await withConnection(target, route, async (_, found) => found);
      return { ...route, schema };
    } catch (error) {
      route = fallbackRoute(target.url, route, error);
      if (route === undefined) throw error;
    }
  }
}

/** Another way to reach the same server, if the failure suggests that it doesn't take this one. */
function fallbackRoute(url: DatabaseUrl, route: Route, error: unknown): Route | undefined {
  if (route.takesOptions && hasState(error, "08P01", "0A000", "42704"))
    return { ...route, takesOptions: false };
  const isTlsTrouble = error instanceof ConnectionLost && reasonOf(error) === undefined;
  if (url.tls === "prefer" && route.isEncrypted && isTlsTrouble) {
    return { ...route, isEncrypted: false };
  }
  return undefined;
}

/** Runs work over a connection of its own, once that is made and checked. */
export async function withConnection<Result>(
  target: Target,
  route: Route,
  work: (client: ClientBase, schema: string | undefined) => Promise<Result>,
): Promise<Result> {
  const client = new Client(clientConfig(target, route));
  client.on("error", () => {});
  try {
    const schema = await withConnectTimeout(client, target.limits, async () => {
      await client.connect();
      return checkServer(client);
    });
    return await work(client, schema);
  } catch (error) {
    const known = [DatabaseError, PlantStoreError, ConnectionLost];
    if (known.some((kind) => error instanceof kind)) throw error;
    throw new ConnectionLost("No connection.", { cause: error });
  } finally {
    client.end().catch(() => {});
  }
}

/** Cuts the connection if the work takes longer than connecting may: then the work fails. */
export async function withConnectTimeout<Result>(
  client: ClientBase,
  { connectTimeoutMs }: ConnectionLimits,
  work: () => Promise<Result>,
): Promise<Result> {
  const late = setTimeout(() => {
    cut(client, Object.assign(new Error("The server did not respond."), { code: "ETIMEDOUT" }));
  }, connectTimeoutMs);
  try {
    return await work();
  } finally {
    clearTimeout(late);
  }
}

/** Closes the socket at once; `end` would wait for outstanding responses. */
export function cut(client: ClientBase, reason?: Error): void {
  // The types of `pg` leave this out.
  const { connection } = client as unknown as {
    connection: { stream: { destroy(error?: Error): void } };
  };
  connection.stream.destroy(reason);
}

/**
 * The one check of a new connection; returns the schema that it leads to. Fails with
 * `ConnectionLost` on a server that takes no writes, and with `unavailable` on one that does not
 * fit. Behind a PgBouncer the settings are its own.
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
  const reason = whyUnusable(server);
  if (reason !== undefined) throw new PlantStoreError("unavailable", reason);
  if (server.plan_cache_mode === settings.plan_cache_mode) allowNames(client);
  return server.schema ?? undefined;
}

function whyUnusable(server: Readonly<Record<string, string | null>>): string | undefined {
  // With these a server confirms writes that can still be lost, or doesn't warn about it.
  const unsafe = { synchronous_commit: "off", client_min_messages: "error" };
  for (const [name, value] of Object.entries(unsafe)) {
    if (server[name] !== value) continue;
    return `its ${name} is ${value}, so that answered writes could be lost: have ALTER ROLE set another`;
  }
  // Compatible databases number their versions differently.
  const version = /^PostgreSQL (\d+)(?!.*-YB-)/.exec(server.version ?? "")?.[1];
  if (version !== undefined && Number(version) < oldestVersion) {
    return `it is PostgreSQL ${version}, and ${oldestVersion} or later is needed`;
  }
  const isUtf8 = /^utf-?8$/i.test(server.encoding ?? "");
  return isUtf8 ? undefined : `its encoding is ${server.encoding}, and UTF8 is needed`;
}

/** `require` encrypts and trusts anyone, unless it is told whom; the others verify, as in libpq. */
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
    throw new PlantStoreError("unavailable", `the file of sslrootcert, ${path}, cannot be read`);
  }
}
