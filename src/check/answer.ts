/**
 * An answer next to the request that it belongs to, as rules look at it and as a report shows it.
 */
import type { WireAnswer } from "./wire.ts";

export class Answer {
  /** What was sent, as text. */
  readonly request: string;
  readonly status: number;
  readonly text: string;
  /** How many bytes came where none may come. */
  readonly surplusBytes: number;
  readonly #wire: WireAnswer;

  constructor(request: string, wire: WireAnswer) {
    this.request = request;
    this.status = wire.status;
    this.text = wire.body.toString("utf8");
    this.surplusBytes = wire.surplus.length;
    this.#wire = wire;
  }

  /** A repeated header is joined by commas. */
  header(wanted: string): string | undefined {
    const found = this.#wire.headers.filter(
      ([name]) => name.toLowerCase() === wanted.toLowerCase(),
    );
    return found.length === 0 ? undefined : found.map(([, value]) => value).join(", ");
  }

  /** The items of a header that lists some, in lower case. */
  items(name: string): string[] {
    return (this.header(name) ?? "")
      .split(",")
      .map((item) => item.trim().toLowerCase())
      .filter((item) => item !== "");
  }

  /**
   * What the body says as JSON, each `id` as a bigint with all its digits; absent if it is no JSON.
   */
  get json(): unknown {
    try {
      return JSON.parse(this.text, keepId as (key: string, value: unknown) => unknown);
    } catch {
      return undefined;
    }
  }

  /** The head and the body, as they came. */
  get whole(): string {
    const lines = this.#wire.headers.map(([name, value]) => `${name}: ${value}`);
    const head = [`HTTP/1.1 ${this.status}`, ...lines, "", ""].join("\n");
    return head + this.text + this.#wire.surplus.toString("utf8");
  }
}

function keepId(key: string, value: unknown, context: { source: string }): unknown {
  return key === "id" && typeof value === "number" ? BigInt(context.source) : value;
}
