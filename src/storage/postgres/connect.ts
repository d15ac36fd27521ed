/**
 * How connections to one address are made: the first one of a process finds out which way the
 * server accepts, and all others are pooled and made in the same way.
 */
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { type ClientConfig, Pool, types } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { deadline } from "../../shared/promises.ts";
import type { ConnectionLimits } from "../storage.ts";
import { Connection, settings } from "./connection.ts";
import { codeOf, hasState } from "./errors.ts";
import type { DatabaseUrl } from "./url.ts";

export interface ConnectionMode {
  readonly isEncrypted: boolean;
  /** Whether the server accepts startup options. */
  readonly takesOptions: boolean;
  /**
   * Where the tables are, pinned as the search path: the first schema of the role's own search
   * path. Absent if that leads nowhere, and for the first connection.
   */
  readonly schema: string | undefined;
}

const int8 = 20;

/**
 * Makes the first connection of a process and runs `setUp` on it, with the role's own search path:
 * that may lead to a store in a schema other than its first.
 */
export async function findMode(
  url: DatabaseUrl,
  limits: ConnectionLimits,
  setUp: (client: Connection) => Promise<void>,
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
): Promise<[Connection, ConnectionMode]> {
  const client = new Connection(clientConfig(url, limits, mode));
  try {
    const connecting = client.connect().then(() => client.checkServer());
    return [client, { ...mode, schema: await inTime(client, limits, connecting) }];
  } catch (error) {
    client.cut();
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
  // PgBouncer, unless it's told to ignore them, and poolers that call them unsupported.
  const refusesOptions = hasState(error, "08P01", "0A000");
  if (mode.takesOptions && refusesOptions) return { ...mode, takesOptions: false };
  const isTlsTrouble = !(error instanceof PlantStoreError) && codeOf(error) === undefined;
  if (url.tls === "prefer" && mode.isEncrypted && isTlsTrouble) {
    return { ...mode, isEncrypted: false };
  }
  return undefined;
}

/** Drops every new connection that doesn't fit: a load balancer may lead to any server. */
export function createPool(config: ClientConfig, limits: ConnectionLimits): Pool {
  const pool = new Pool({
    ...config,
    max: limits.poolSize,
    connectionTimeoutMillis: limits.connectTimeoutMs,
    Client: Connection,
    async onConnect(client) {
      const connection = client as Connection;
      await inTime(connection, limits, connection.checkServer());
    },
  });
  // Without a listener, a lost idle connection would end the process.
  pool.on("error", () => {});
  return pool;
}

/** Cuts the connection if connecting takes too long. */
function inTime<Result>(
  client: Connection,
  { connectTimeoutMs }: ConnectionLimits,
  connecting: Promise<Result>,
): Promise<Result> {
  return deadline(connecting, connectTimeoutMs, () => {
    client.cut();
    throw Object.assign(new Error("The server did not respond."), { code: "ETIMEDOUT" });
  });
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
