/** How a command fails: one line for a person, and an exit code for scripts. */

export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  notFound: 3,
  tokenRefused: 4,
  conflict: 5,
  unavailable: 6,
  interrupted: 130,
} as const;

/** An expected failure. `message` is shown as it is and says what to do. */
export class CliError extends Error {
  override readonly name = "CliError";

  constructor(
    message: string,
    readonly exitCode: number = exitCodes.failed,
  ) {
    super(message);
  }
}

export function usageError(message: string): CliError {
  return new CliError(message, exitCodes.usage);
}
