/** The two ways in which a rule does not pass. */
import type { Answer } from "./answer.ts";

/** The service does not do what a rule says. The message says what was expected and what came. */
export class Violation extends Error {
  readonly answer: Answer | undefined;

  constructor(message: string, answer?: Answer) {
    super(message);
    this.answer = answer;
  }
}

/** The rule cannot be seen here; the message says why, or what it needs. */
export class Skipped extends Error {}
