/**
 * Turns what `pg` throws into the domain's errors, and into words for an operator. It goes by codes
 * and never reads a message.
 */
import { DatabaseError } from "pg";
import { type ErrorCode, PlantStoreError, sendAgain } from "../../domain/errors.ts";
import type { DatabaseUrl } from "./url.ts";

/** There is no connection: it couldn't be made, was lost, or didn't respond in time. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

const unavailable = "The storage cannot be used right now. Try again shortly.";

/** By SQLSTATE, whose first two characters are its class. */
const failures: readonly [prefix: string, code: ErrorCode, message: string][] = [
  ["53100", "storage-full", "The storage is full. Nothing was changed; reading still works."],
  ["25006", "unavailable", "The storage is read-only right now. Reading still works."],
  ["57014", "unavailable", "The storage took too long. Nothing was changed; try again shortly."],
  [
    "40",
    "unavailable",
    "Too many writes at the same time. Nothing was changed; try again shortly.",
  ],
];

const outages = ["08", "25P", "28", "3D", "42501", "53", "55P03", "57P", "58", "XX"];

/** The domain's error for a failure of the engine; anything else is returned as it is. */
export function mapError(error: unknown): unknown {
  const failure = failures.find(([prefix]) => hasState(error, prefix));
  if (failure) return new PlantStoreError(failure[1], failure[2], { cause: error });
  const isOutage = error instanceof ConnectionLost || hasState(error, ...outages);
  return isOutage ? new PlantStoreError("unavailable", unavailable, { cause: error }) : error;
}

/** The code that the server or the system reported; absent if there is none. */
export function codeOf(error: unknown): string | undefined {
  const refusal = error instanceof ConnectionLost ? error.cause : error;
  const { code } = (refusal ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}

/** Whether the server reported an error of this SQLSTATE or, by its first characters, class. */
export function hasState(error: unknown, ...prefixes: readonly string[]): boolean {
  if (!(error instanceof DatabaseError)) return false;
  return prefixes.some((prefix) => error.code?.startsWith(prefix));
}

/** The server ends the connection: a failure, a shutdown, a transaction that takes too long. */
const disconnects = ["08", "57P", "25P03", "25P04"];

/** Whether another connection, perhaps to another server, may do better. */
export function needsNewConnection(error: unknown): boolean {
  return error instanceof ConnectionLost || hasState(error, ...disconnects) || isReadOnly(error);
}

/** Whether the server is read-only, or has become so. */
export function isReadOnly(error: unknown): boolean {
  return hasState(error, "25006") || codeOf(error) === "READ_ONLY";
}

/**
 * Whether a commit that failed with this error may still have happened. If the server reports that
 * a statement failed, it was undone. A lost connection or a shutdown says nothing about the commit.
 */
export function isOutcomeUnknown(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return true;
  return hasState(error, ...disconnects, "58", "XX", "40003");
}

/** Requests can be retried with their key; commands need other advice. */
export function unknownOutcome(cause: unknown, advice = sendAgain): PlantStoreError {
  const message = "The storage did not confirm the write, so its outcome is unknown.";
  return new PlantStoreError("unavailable", `${message} ${advice}`.trimEnd(), { cause });
}

const nothingListens = "nothing listens there";
const unknownHost = "the host is not known";
const noAnswer = "the host does not answer";

/** By SQLSTATE, or by the system's error code. */
const reasons: Readonly<Record<string, string>> = {
  "28P01": "the user or the password is wrong",
  "28000": "the server does not let this user in from here",
  "3F000": "no schema of the role's search path is there, or open to the role",
  "42501":
    "the role lacks rights on it (CREATE on the schema to make the tables; " +
    "SELECT, INSERT, UPDATE and DELETE to use them)",
  "42P07": "it holds tables of another program",
  "53300": "the server has no connection left",
  "57014": "the role's statement_timeout is too short (to migrate, connect once without PgBouncer)",
  "57P03": "the server is starting or stopping",
  READ_ONLY: "the server takes no writes: it is a standby or read-only",
  ECONNREFUSED: nothingListens,
  // For a Unix socket.
  ENOENT: nothingListens,
  ENOTFOUND: unknownHost,
  EAI_AGAIN: unknownHost,
  ETIMEDOUT: noAnswer,
  EHOSTUNREACH: noAnswer,
  ENETUNREACH: noAnswer,
};

/** Why a database cannot be opened, in words that follow "Cannot open …: ". */
export function describeFailure(error: unknown, url: DatabaseUrl): string {
  const { database, user, password = process.env.PGPASSWORD, tls } = url;
  if (error instanceof PlantStoreError) return error.message.replace(/\.$/, "");
  const code = codeOf(error);
  if (code === undefined) {
    const advice = password ? "" : " (if it asks for a password, set PGPASSWORD)";
    return tls === "prefer" || tls === "disable"
      ? `the connection was refused or cut${advice}`
      : `it cut the connection, or does not offer TLS, which sslmode=${tls} asks for`;
  }
  if (code === "3D000") return `there is no database ${JSON.stringify(database ?? user ?? "")}`;
  if (/CERT|SIGNATURE|TLS|SSL/.test(code)) return `its certificate is not trusted (${code})`;
  return reasons[code] ?? `the server refused (${code})`;
}
