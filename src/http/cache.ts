/**
 * Caches lists. A cached list counts until anything in its garden changes; then it stays, unused,
 * until the next one replaces it.
 */
import type { Reply } from "./reply.ts";

const cachedCharactersMax = 8 * 1024 * 1024;
const bodyCharactersMax = 64 * 1024;
/** What a response takes beside its body, roughly: its headers and its place in the map. */
const overheadCharacters = 1024;
const seenKeysMax = 4_096;
const keyCharactersMax = 256;

interface Entry {
  readonly version: number;
  readonly response: Reply;
  readonly characters: number;
}

export class ResponseCache {
  /** The oldest first. */
  readonly #entries = new Map<string, Entry>();
  /** Keys that were requested once, but aren't cached. */
  readonly #seen = new Set<string>();
  #characters = 0;

  /** The response that was cached under this key, if it still holds at this version. */
  find(key: string, version: number): Reply | undefined {
    const entry = this.#entries.get(key);
    return entry?.version === version ? entry.response : undefined;
  }

  /**
   * Notes that this key was requested. Returns whether its response is worth caching: only from the
   * second request on. Caching all of them took a fifth of the time of lists over 100,000 gardens.
   */
  noteRequest(key: string): boolean {
    if (key.length > keyCharactersMax) return false;
    if (this.#seen.has(key) || this.#entries.has(key)) return true;
    if (this.#seen.size >= seenKeysMax) this.#seen.clear();
    this.#seen.add(key);
    return false;
  }

  /** The version must have been read before the response was made. */
  add(key: string, version: number, response: Reply): void {
    this.#remove(key);
    const { body } = response;
    if (typeof body !== "string" || body.length > bodyCharactersMax) return;
    const characters = key.length + body.length + overheadCharacters;
    this.#entries.set(key, { version, response, characters });
    this.#characters += characters;
    for (const oldest of this.#entries.keys()) {
      if (this.#characters <= cachedCharactersMax) break;
      this.#remove(oldest);
    }
  }

  #remove(key: string): void {
    this.#characters -= this.#entries.get(key)?.characters ?? 0;
    this.#entries.delete(key);
  }
}
