/** Maps what `pg` throws to the domain's errors, by code. It never reads a message. */
import { DatabaseError } from "pg";
import { type ErrorCode, PlantStoreError } from "../../domain/errors.ts";

/** The connection could not be made, or was lost, or did not answer in time. */
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

/** The domain's error for a failure of the engine; anything else comes back as it is. */
export function mapError(error: unknown): unknown {
  const failure = failures.find(([prefix]) => hasState(error, prefix));
  if (failure) return new PlantStoreError(failure[1], failure[2], { cause: error });
  const isOutage = error instanceof ConnectionLost || hasState(error, ...outages);
  return isOutage ? new PlantStoreError("unavailable", unavailable, { cause: error }) : error;
}

/** The code of a refusal, by the server or the system; absent if time ran out. */
export function reasonOf(error: unknown): string | undefined {
  const refusal = error instanceof ConnectionLost ? error.cause : error;
  const { code } = (refusal ?? {}) as { code?: unknown };
  return typeof code === "string" ? code : undefined;
}

/** Whether the server reported an error of this SQLSTATE or, by its first characters, class. */
export function hasState(error: unknown, ...prefixes: readonly string[]): boolean {
  if (!(error instanceof DatabaseError)) return false;
  return prefixes.some((prefix) => error.code?.startsWith(prefix));
}

/** The server ends the connection: it fails, goes away, or a transaction took or idled too long. */
const farewells = ["08", "57P", "25P03", "25P04"];

/** Another connection, perhaps to another server, may do better. */
export function isLost(error: unknown): boolean {
  return error instanceof ConnectionLost || hasState(error, ...farewells, "25006");
}

/**
 * Whether a commit that ended with this error may have happened. What the server reports of a
 * statement was undone; that it goes away, or nothing at all, says nothing of the commit.
 */
export function isDoubtful(error: unknown): boolean {
  if (!(error instanceof DatabaseError)) return true;
  return hasState(error, ...farewells, "58", "XX", "40003");
}

/** Requests have a key that they can be sent again with; others are told something else. */
export function unknownOutcome(
  cause: unknown,
  advice = "Retry with the same Idempotency-Key.",
): PlantStoreError {
  const message = "The storage did not confirm the write, so its outcome is unknown.";
  return new PlantStoreError("unavailable", `${message} ${advice}`.trimEnd(), { cause });
}
