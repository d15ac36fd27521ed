/**
 * Keeps answers of lists for as long as no plant has changed, so that a list that is asked for again
 * is neither read nor rendered again. Whether something has changed, by any process, is asked of the
 * storage once in a turn of the event loop: every request of that turn had arrived before.
 */
import type { Answer } from "./operation.ts";

const keptCharactersMax = 8 * 1024 * 1024;
const answerCharactersMax = 64 * 1024;
/** What an answer takes beside its text, roughly: its headers, and its place in the map. */
const overheadCharacters = 1024;

export class KeptAnswers {
  readonly #readVersion: () => bigint | undefined;
  readonly #answers = new Map<string, Answer>();
  #characters = 0;
  #version: bigint | undefined;
  #isChecked = false;

  constructor(readVersion: () => bigint | undefined) {
    this.#readVersion = readVersion;
  }

  /** The answer that was kept under this key, if it still holds. */
  find(key: string): Answer | undefined {
    this.#check();
    return this.#answers.get(key);
  }

  /** Keeps the answer that `make` gives, unless something changes meanwhile. */
  async keep(key: string, make: () => Promise<Answer>): Promise<Answer> {
    this.#check();
    const version = this.#version;
    const answer = await make();
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
    if (this.#isChecked) return;
    const version = this.#readVersion();
    if (version !== this.#version) this.#forgetAll();
    this.#version = version;
    this.#isChecked = true;
    setImmediate(() => {
      this.#isChecked = false;
    });
  }

  #forgetAll(): void {
    this.#answers.clear();
    this.#characters = 0;
  }
}
