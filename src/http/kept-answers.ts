/**
 * Keeps answers of lists for as long as no plant has changed, so that a list that is asked for
 * again is neither read nor rendered again. Whether something has changed, by any thread or
 * process, is asked of the storage for every request.
 */
import type { Answer } from "./operation.ts";

const keptCharactersMax = 8 * 1024 * 1024;
const answerCharactersMax = 64 * 1024;
/** What an answer takes beside its text, roughly: its headers, and its place in the map. */
const overheadCharacters = 1024;
const askedKeysMax = 4_096;
const keyCharactersMax = 256;

export class KeptAnswers {
  readonly #readVersion: () => bigint | undefined;
  readonly #answers = new Map<string, Answer>();
  /** What was asked for, but not kept yet. */
  readonly #asked = new Set<string>();
  #characters = 0;
  #version: bigint | undefined;

  constructor(readVersion: () => bigint | undefined) {
    this.#readVersion = readVersion;
  }

  /** The answer that was kept under this key, if it still holds. */
  find(key: string): Answer | undefined {
    this.#check();
    return this.#answers.get(key);
  }

  /**
   * Whether the answer is worth being kept: only one that is asked for a second time is. To keep
   * what nobody asks for again cost a fifth of the time of lists over 100,000 gardens in turn.
   */
  isWanted(key: string): boolean {
    this.#check();
    if (this.#asked.has(key)) return true;
    if (key.length > keyCharactersMax) return false;
    if (this.#asked.size >= askedKeysMax) this.#asked.clear();
    this.#asked.add(key);
    return false;
  }

  /**
   * Keeps the answer that is being made now, unless something changes meanwhile. The version that
   * counts is the one that `find` or `isWanted` saw before the making began: a later one could be
   * of a commit that the answer does not show.
   */
  async keep(key: string, making: Promise<Answer>): Promise<Answer> {
    const version = this.#version;
    const answer = await making;
    const { body } = answer;
    if (version === undefined || version !== this.#version || typeof body !== "string") {
      return answer;
    }
    if (body.length > answerCharactersMax || this.#answers.has(key)) return answer;
    const characters = key.length + body.length + overheadCharacters;
    if (this.#characters + characters > keptCharactersMax) this.#forgetAll();
    this.#characters += characters;
    this.#answers.set(key, answer);
    return answer;
  }

  #check(): void {
    const version = this.#readVersion();
    if (version !== this.#version) this.#forgetAll();
    this.#version = version;
  }

  #forgetAll(): void {
    this.#answers.clear();
    this.#asked.clear();
    this.#characters = 0;
  }
}
