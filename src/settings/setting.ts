/**
 * What a setting is: a flag, a variable of the environment, a default, and how its text is read.
 */

export interface Setting<Value> {
  readonly flag: string;
  readonly environment: string;
  readonly placeholder: string;
  readonly fallback: string;
  readonly help: string;
  /** Absent if the text makes no sense. */
  readonly parse: (text: string) => Value | undefined;
  readonly expected: string;
  /** Whether its text is never shown, because it holds a secret. */
  readonly isSecret?: true;
}

export function integerBetween(
  min: number,
  max: number,
): Pick<Setting<number>, "parse" | "expected"> {
  return {
    parse: (text) =>
      /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max
        ? Number(text)
        : undefined,
    expected: `a number from ${min} to ${max}`,
  };
}

/** A text that makes no sense, as it may be shown: an address without its user and password. */
export function quoteText(text: string): string {
  return JSON.stringify(text.replace(/\/\/.*@/s, "//…@"));
}

/** A URL behind a quote or a space, or without its colon, is no path: it holds a password. */
const misplacedUrl = /^(?![a-z][a-z\d+.-]*:).*(?::\/\/|\/\/[^/]*:[^/]*@)/is;

export function databaseAddress(): Pick<Setting<string>, "parse" | "expected" | "isSecret"> {
  return {
    parse: (text) =>
      text === "" || text === ":memory:" || misplacedUrl.test(text) ? undefined : text,
    expected: "the path of a file or the URL of a PostgreSQL database, without quotes",
    isSecret: true,
  };
}
