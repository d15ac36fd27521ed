/** How a command fails: one line for a person, and an exit code for scripts. */
import { whyNot } from "../domain/file-failure.ts";

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  tokenRefused: 4,
  conflict: 5,
  unavailable: 6,
  rowsRefused: 7,
  interrupted: 130,
} as const;

/** An expected failure. `message` is shown as it is and says what to do. */
export class CliError extends Error {
  override readonly name = "CliError";

  constructor(
    message: string,
    readonly exitCode: number = exitCodes.failed,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export function usageError(message: string): CliError {
  return new CliError(message, exitCodes.usage);
}

export function fileError(verb: "read" | "write", path: string, cause: unknown): CliError {
  const message = `Cannot ${verb} ${path}: ${whyNot(verb, cause)}.`;
  return new CliError(message, exitCodes.failed, { cause });
}

/** A failed system call as a `CliError`; any other error as it is. */
export function toFileError(verb: "read" | "write", path: string, error: unknown): unknown {
  return error instanceof Error && "syscall" in error ? fileError(verb, path, error) : error;
}
