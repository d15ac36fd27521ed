/**
 * One connection to one PostgreSQL server, with the settings that the promises of storage rest on.
 */
import { readFileSync } from "node:fs";
import type { ConnectionOptions } from "node:tls";
import { Client, type ClientBase, type ClientConfig, DatabaseError, types } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import type { ConnectionLimits } from "../../domain/storage.ts";
import type { Address, Host } from "./address.ts";
import { ConnectionLost, hasState } from "./failure.ts";
import { type Lineage, readLineage } from "./lineage.ts";

/** How a server can be asked. */
interface Way extends Host {
  readonly isEncrypted: boolean;
  /** Whether it takes settings with a connection. A PgBouncer before it does not. */
  readonly takesSettings: boolean;
}

/** How a server was found to take connections, and what it is. */
export interface Server extends Way {
  readonly lineage: Lineage | undefined;
}

/**
 * Plants are read in the order of their index, a few of many. Where the server does not know yet
 * how many a garden has, it would rather gather all of them and sort. Lists of values have gaps,
 * whatever a role's settings say. And where row-level security would leave out rows, the server
 * refuses to read, rather than be silent.
 */
const settings = "-c enable_bitmapscan=off -c array_nulls=on -c row_security=off";

const oldestVersion = 15;
const int8 = 20;

export function clientConfig(
  address: Address,
  server: Way,
  limits: ConnectionLimits,
): ClientConfig {
  return {
    host: server.host,
    port: server.port,
    user: address.user,
    password: address.password,
    database: address.database ?? address.user,
    application_name: address.applicationName,
    ssl: server.isEncrypted && tlsOptions(address),
    statement_timeout: server.takesSettings && limits.statementTimeoutMs,
    // Where options are given, PGOPTIONS is not read.
    ...(server.takesSettings && { options: `${process.env.PGOPTIONS ?? ""} ${settings}` }),
    keepAlive: true,
    // Statements that do not need each other's results share one way there and back.
    pipeline: true,
    types: {
      // Without it, integers of 64 bits come as text.
      getTypeParser: ((oid: number, format: "text") =>
        oid === int8 ? BigInt : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
    },
  };
}

/**
 * Connects to a host, checks that it can keep plants and takes writes, and has the store that is
 * looked for, and tells how it was done.
 */
export async function probe(
  address: Address,
  host: Host,
  limits: ConnectionLimits,
  requireStore: (client: Client) => Promise<void>,
): Promise<Server> {
  let way: Way = { ...host, isEncrypted: address.tls !== "disable", takesSettings: true };
  for (;;) {
    try {
      return { ...way, lineage: await check(address, way, limits, requireStore) };
    } catch (error) {
      const next = lessDemanding(address, way, error);
      if (next === undefined) throw error;
      way = next;
    }
  }
}

/** Another way to try the same server, where the failure says that it may not take this one. */
function lessDemanding(address: Address, server: Way, error: unknown): Way | undefined {
  if (server.takesSettings && hasState(error, "08P01", "0A000", "42704"))
    return { ...server, takesSettings: false };
  const isTlsTrouble = error instanceof ConnectionLost && reasonOf(error) === undefined;
  if (address.tls === "prefer" && server.isEncrypted && isTlsTrouble) {
    return { ...server, isEncrypted: false };
  }
  return undefined;
}

async function check(
  address: Address,
  server: Way,
  limits: ConnectionLimits,
  requireStore: (client: Client) => Promise<void>,
): Promise<Lineage | undefined> {
  const client = new Client(clientConfig(address, server, limits));
  client.on("error", () => {});
  try {
    return await promptly(client, limits, async () => {
      await client.connect();
      await requireWritable(client);
      await requireDurable(client);
      await requireSupported(client);
      await requireStore(client);
      return readLineage(client);
    });
  } catch (error) {
    const known = [DatabaseError, PlantStoreError, ConnectionLost];
    if (known.some((kind) => error instanceof kind)) throw error;
    throw new ConnectionLost("No connection.", { cause: error });
  } finally {
    client.end().catch(() => {});
  }
}

/** Cuts the connection if the work takes longer than to connect may: then the work fails. */
export async function promptly<Result>(
  client: ClientBase,
  { connectTimeoutMs }: ConnectionLimits,
  work: () => Promise<Result>,
): Promise<Result> {
  const late = setTimeout(() => {
    cut(client, Object.assign(new Error("The server did not answer."), { code: "ETIMEDOUT" }));
  }, connectTimeoutMs);
  try {
    return await work();
  } finally {
    clearTimeout(late);
  }
}

/** At once, and for whatever reason. To end it would wait for all answers that are due. */
export function cut(client: ClientBase, reason?: Error): void {
  (client as unknown as Socketed).connection.stream.destroy(reason);
}

/** The part of a client that its types leave out. */
interface Socketed {
  readonly connection: { readonly stream: { destroy(error?: Error): void } };
}

/** Fails with `ConnectionLost` on a standby, and on a server that was made read-only. */
export async function requireWritable(client: Pick<Client, "query">): Promise<void> {
  const { rows } = await client.query("SHOW transaction_read_only");
  if (rows[0]?.transaction_read_only !== "off") {
    throw new ConnectionLost("The server takes no writes.", { cause: readOnly });
  }
}

/** Not a failure of the network: the server answered. */
const readOnly = Object.assign(new Error("It is a standby or read-only."), { code: "READ_ONLY" });

/** Under these a server confirms what can still be lost, or does not say so. */
const careless = { synchronous_commit: "off", client_min_messages: "error" };

/** Whoever set up the database, the role or the server may have chosen speed, or silence. */
export async function requireDurable(client: Pick<Client, "query">): Promise<void> {
  const settings = Object.keys(careless).map((name) => `current_setting('${name}') AS ${name}`);
  const { rows } = await client.query(`SELECT ${settings}`);
  for (const [name, value] of Object.entries(careless)) {
    if (rows[0]?.[name] !== value) continue;
    throw new PlantStoreError(
      "unavailable",
      `its ${name} is ${value}, so that answered writes could be lost: have ALTER ROLE set another`,
    );
  }
}

async function requireSupported(client: Client): Promise<void> {
  const { rows } = await client.query("SELECT version() AS version");
  // Databases that speak like PostgreSQL count their versions in their own way.
  const version = /^PostgreSQL (\d+)(?!.*-YB-)/.exec(String(rows[0]?.version))?.[1];
  if (version !== undefined && Number(version) < oldestVersion) {
    throw new PlantStoreError(
      "unavailable",
      `it is PostgreSQL ${version}, and ${oldestVersion} or later is needed`,
    );
  }
  const encoding = (await client.query("SHOW server_encoding")).rows[0]?.server_encoding;
  if (String(encoding).replace("-", "").toUpperCase() !== "UTF8") {
    throw new PlantStoreError("unavailable", `its encoding is ${encoding}, and UTF8 is needed`);
  }
}

/** `require` encrypts and trusts anyone, unless it is told whom; the others verify, as in libpq. */
function tlsOptions(address: Address): ConnectionOptions {
  const { tls, rootCertificatePath } = address;
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

/** Lets the transaction that is under way take its time, whatever was set for the role. */
export async function liftTimeouts(client: Pick<Client, "query">): Promise<void> {
  // Not by SET LOCAL: servers before PostgreSQL 17 know no transaction_timeout.
  await client.query(
    `SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN ('statement_timeout',
       'idle_in_transaction_session_timeout', 'transaction_timeout')`,
  );
}

/** In words that follow "Cannot open …: ". */
export function explain(error: unknown, address: Address): string {
  if (error instanceof PlantStoreError) return error.message.replace(/\.$/, "");
  const code = reasonOf(error) ?? "";
  switch (code) {
    case "28P01":
      return "the user or the password is wrong";
    case "28000":
      return "the server does not let this user in from here";
    case "3D000":
      return `there is no database ${JSON.stringify(address.database ?? address.user ?? "")}`;
    case "3F000":
      return "no schema of the role's search path is there, or open to the role";
    case "42501":
      return (
        "the role lacks rights on it (CREATE on the schema to make the tables; " +
        "SELECT, INSERT, UPDATE and DELETE to use them)"
      );
    case "42P07":
      return "it holds tables of another program";
    case "53300":
      return "the server has no connection left";
    case "57P03":
      return "the server is starting or stopping";
    case "READ_ONLY":
      return "the server takes no writes: it is a standby or read-only";
    case "REPLACED":
      return "the server was replaced by another one, which was promoted";
    case "ECONNREFUSED":
    // Of a socket in the file system.
    case "ENOENT":
      return "nothing listens there";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return "the host is not known";
    case "ETIMEDOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return "the host does not answer";
    case "":
      return address.tls === "prefer" || address.tls === "disable"
        ? "the connection was refused or cut"
        : `it cut the connection, or does not offer TLS, which sslmode=${address.tls} asks for`;
    default:
      return /CERT|SIGNATURE|TLS|SSL/.test(code)
        ? `its certificate is not trusted (${code})`
        : `the server refused (${code})`;
  }
}

/** The code of a refusal, by the server or by what was asked of it; absent if time ran out. */
export function reasonOf(error: unknown): string | undefined {
  return codeOf(error instanceof ConnectionLost ? error.cause : error);
}

/** A SQLSTATE or the code of a system error. */
function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}
