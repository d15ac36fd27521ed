/** What a rule has at hand: the gardens of its tokens, and ids that are free. */
import type { Answer } from "./answer.ts";
import type { Line, RequestParts } from "./line.ts";
import { Skipped } from "./outcome.ts";
import { Garden, nameMark } from "./tended-garden.ts";

export interface Tokens {
  readonly first: string;
  /** Opens another garden. */
  readonly second?: string | undefined;
  /** May only read. */
  readonly read?: string | undefined;
}

/** Ids here leave the ids alone that the service assigns, and are exact as doubles too. */
const preferredStarts = [2n ** 52n, 2n ** 53n, 2n ** 60n, 2n ** 62n, 2n ** 63n - 2n ** 40n];
const stepIds = 1_000n;
const startsSpan = 2 ** 29;

export class Probe {
  readonly line: Line;
  readonly garden: Garden;
  readonly isSlow: boolean;
  readonly #second: Garden | undefined;
  readonly #reader: Garden | undefined;
  #nextId = 0n;

  constructor(line: Line, tokens: Tokens, isSlow: boolean) {
    this.line = line;
    this.isSlow = isSlow;
    this.garden = new Garden(line, tokens.first);
    if (tokens.second !== undefined) this.#second = new Garden(line, tokens.second);
    if (tokens.read !== undefined) this.#reader = new Garden(line, tokens.read);
  }

  /** The garden of `--token-2`. */
  get second(): Garden {
    if (this.#second) return this.#second;
    throw new Skipped("needs --token-2, a token to another garden");
  }

  /** The garden of `--token-read`. */
  get reader(): Garden {
    if (this.#reader) return this.#reader;
    throw new Skipped("needs --token-read, a token that may only read");
  }

  get hasReader(): boolean {
    return this.#reader !== undefined;
  }

  /** The gardens that rules create plants in. */
  get gardens(): Garden[] {
    return this.#second ? [this.garden, this.#second] : [this.garden];
  }

  /** Also the one where only a broken service lets anybody create a plant. */
  get touchedGardens(): Garden[] {
    return this.#reader ? [...this.gardens, this.#reader] : this.gardens;
  }

  /** Without a token. */
  askOpenly(request: string, parts: RequestParts = {}): Promise<Answer> {
    return this.line.send(request, parts);
  }

  /** An id that is free in all gardens. Each is higher than those before. */
  freshId(): bigint {
    this.#nextId += 1n;
    return this.#nextId;
  }

  /** A fresh id that ends in three zeros. */
  freshRoundId(): bigint {
    this.#nextId = (this.#nextId / stepIds + 1n) * stepIds;
    return this.#nextId;
  }

  /** A plant that is known for one of this run, with a fresh id. */
  draft(about: string): { name: string; tag: string; id: bigint } {
    return { name: `${nameMark} ${about}`, tag: about, id: this.freshId() };
  }

  /**
   * Finds ids behind which no plant lies, in any garden, so that lists of them can be seen to their
   * end. Says what is in the way, if all are taken.
   */
  async claimIds(): Promise<string | undefined> {
    let obstacle = "";
    for (const start of preferredStarts) {
      const from = start + BigInt(Math.floor(Math.random() * startsSpan)) * stepIds;
      const isBeyond = await Promise.all(
        this.gardens.map((garden) => garden.findFirst(`&after=${from - 1n}`)),
      );
      const found = isBeyond.find((plant) => plant !== undefined);
      if (found === undefined) {
        this.#nextId = from;
        for (const garden of this.gardens) garden.claimFrom(from);
        return undefined;
      }
      obstacle = `the plant ${found.id} (${found.name}) lies behind all ids that could be used`;
    }
    return obstacle;
  }
}
