/**
 * Turns what `pg` throws into the domain's errors, and into words for an operator. It goes by codes
 * and never reads a message.
 */
import { DatabaseError } from "pg";
import { PlantStoreError } from "../../domain/errors.ts";
import { describeSystemError } from "../../shared/system-errors.ts";
import { type FailureCodes, mapByCode, storageError } from "../failures.ts";
import type { DatabaseUrl } from "./url.ts";

/** There is no connection: it couldn't be made, was lost, or didn't respond in time. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/** SQLSTATEs, or their first two characters, which are their class. */
const failureCodes: FailureCodes = [
  ["full", ["53100"]],
  ["tooSlow", ["57014"]],
  ["tooBusy", ["40"]],
  ["unavailable", ["08", "25006", "25P", "28", "3D", "42501", "53", "55P03", "57P", "58", "XX"]],
];

/** The domain's error for a failure of the engine; anything else is returned as it is. */
export function mapError(error: unknown): unknown {
  if (error instanceof ConnectionLost) return storageError("unavailable", error);
  return error instanceof DatabaseError ? mapByCode(error, error.code, failureCodes) : error;
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

/** Whether a lock timed out. `mapError` makes that `unavailable`, with the server's error as cause. */
export function isLocked(error: unknown): boolean {
  return hasState((error as Error).cause, "55P03");
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

/** By SQLSTATE. */
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
  // Of a Unix socket.
  ENOENT: "nothing listens there",
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
  return reasons[code] ?? describeSystemError({ code }) ?? `the server refused (${code})`;
}
