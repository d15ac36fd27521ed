/**
 * From the text of a credential to the caller it stands for. Remembers what storage said, so that a
 * hot token costs no query; it does not know how the credential arrived.
 */
import type { Caller } from "../domain/caller.ts";
import { PlantStoreError } from "../domain/errors.ts";
import type { TokenStorage, TokenUse } from "../domain/storage.ts";
import { type TokenRecord, tokenState } from "../domain/token.ts";
import { isJwtForm, type JsonWebTokens } from "./json-web-tokens.ts";
import { hashToken } from "./opaque-token.ts";

/**
 * Beyond this many, the token that was remembered longest ago is looked up again when it is used.
 */
const knownTokensMax = 131_072;
/** Refused texts have a room of their own, so that guessing cannot push good tokens out. */
const refusedTokensMax = 4_096;
const refusedCharactersMax = 256;
/** In one transaction, so that writers who wait behind it do not notice. */
const notedUsesMax = 1_000;
/**
 * A refusal that had to be found is told this long after it was asked for, and not as soon as it is
 * found: to read a token that is there takes 9 µs longer than to find none.
 */
const refusedAfterMs = 5;
/** What is remembered counts only while the count of token changes was confirmed this recently. */
const trustMs = 4_000;

/** As little as possible: a hundred thousand of them may be known. */
interface KnownToken extends Pick<TokenRecord, "id" | "expiresAtMs" | "revokedAtMs"> {
  readonly caller: Caller;
  usedAtMs: number;
  gatheredAtMs: number;
}

export type RefreshableTokens = Pick<
  TokenStorage,
  "findToken" | "countTokenChanges" | "noteTokenUses"
>;

export class Authenticator {
  readonly #storage: RefreshableTokens;
  readonly #nowMs: () => number;
  readonly #jwts: JsonWebTokens | undefined;
  /**
   * By the token itself, which lives in this process only as long as it is remembered. To find the
   * caller took 4.5 of the 54 µs of a list while the token was hashed first for it; storage still
   * knows hashes only.
   */
  readonly #known = new Map<string, KnownToken>();
  readonly #refused = new Set<string>();
  /** Uses by token id that storage has not been told of. */
  #uses = new Map<string, number>();
  #changes = -1;
  /** How often all was forgotten. */
  #forgotten = 0;
  #confirmedAtMs = Number.NEGATIVE_INFINITY;

  constructor(storage: RefreshableTokens, nowMs: () => number, jwts?: JsonWebTokens) {
    this.#storage = storage;
    this.#nowMs = nowMs;
    this.#jwts = jwts;
  }

  /**
   * Fails with `unauthenticated`, in the same words and after the same time, whether the token is
   * malformed, unknown, expired or revoked. An issuer that is asked for its keys is told
   * `traceparent`.
   */
  async authenticate(token: string, traceparent?: string): Promise<Caller> {
    const caller = this.recall(token) ?? (await this.#find(token, traceparent));
    if (caller instanceof PlantStoreError) throw caller;
    return caller;
  }

  async #find(token: string, traceparent?: string): Promise<Caller | PlantStoreError> {
    // Begun before anything is known, so that its end does not depend on what there is to know.
    const isDue = new Promise((resolve) => setTimeout(resolve, refusedAfterMs));
    const isJwt = this.#jwts !== undefined && isJwtForm(token);
    const caller = await (isJwt ? this.#jwts?.check(token, traceparent) : this.#lookUp(token));
    if (caller === undefined) await isDue;
    return caller ?? tokenRefused;
  }

  /**
   * What is remembered of a token, at once: its caller, or its refusal; absent if storage, or for a
   * JWT its issuer's keys, must be asked. The refusal is handed back rather than thrown: 5 % more
   * refusals a second.
   */
  recall(token: string): Caller | PlantStoreError | undefined {
    const nowMs = this.#nowMs();
    // Without a fresh count a revocation could have been missed, so every opaque token is asked
    // for.
    if (!this.#isConfirmed(nowMs)) return this.#jwts?.recall(token, nowMs);
    const known = this.#known.get(token);
    if (known !== undefined) return this.#admit(token, known, nowMs);
    return this.#refused.has(token) ? tokenRefused : this.#jwts?.recall(token, nowMs);
  }

  /** Absent if it has expired: its refusal is found, and takes its time, as any other does. */
  #admit(token: string, known: KnownToken, nowMs: number): Caller | undefined {
    if (tokenState(known, nowMs) === "active") {
      known.usedAtMs = nowMs;
      return known.caller;
    }
    this.#gatherUse(known);
    this.#known.delete(token);
    return undefined;
  }

  /**
   * In one room, whatever the reason: else a flood of others would push out some kinds and not all.
   */
  #refuse(token: string): void {
    if (token.length > refusedCharactersMax) return;
    makeRoom(this.#refused, refusedTokensMax);
    this.#refused.add(token);
  }

  /** Forgets what it knows if a token was added or revoked since, by any process. */
  async refresh(): Promise<void> {
    const nowMs = this.#nowMs();
    const changes = await this.#storage.countTokenChanges();
    // By a clock that was set back, what had expired may be good again. And after a while without
    // a count the same one proves nothing: an older copy of the storage, which took over, may have
    // reached it by other changes.
    const isProof = this.#isConfirmed(nowMs) && nowMs >= this.#confirmedAtMs;
    if (changes !== this.#changes || !isProof) {
      this.#gatherUses();
      this.#known.clear();
      this.#refused.clear();
      this.#forgotten++;
    }
    this.#changes = changes;
    this.#confirmedAtMs = nowMs;
  }

  /** A clock that was set back proves nothing either. */
  #isConfirmed(nowMs: number): boolean {
    return Math.abs(nowMs - this.#confirmedAtMs) <= trustMs;
  }

  /** Writes down when tokens were last used: rarely, and off the path of any request. */
  async noteUses(): Promise<void> {
    this.#gatherUses();
    if (this.#uses.size === 0) return;
    const uses = this.#uses;
    this.#uses = new Map();
    const list = Array.from(uses, ([id, usedAtMs]): TokenUse => ({ id, usedAtMs }));
    try {
      for (let from = 0; from < list.length; from += notedUsesMax) {
        await this.#storage.noteTokenUses(list.slice(from, from + notedUsesMax));
      }
    } catch (error) {
      this.#uses = new Map([...uses, ...this.#uses]);
      throw error;
    }
  }

  #gatherUses(): void {
    for (const known of this.#known.values()) this.#gatherUse(known);
  }

  #gatherUse(known: KnownToken): void {
    if (known.usedAtMs === known.gatheredAtMs) return;
    known.gatheredAtMs = known.usedAtMs;
    this.#uses.set(known.id, known.usedAtMs);
  }

  async #lookUp(token: string): Promise<Caller | undefined> {
    const forgotten = this.#forgotten;
    const record = await this.#storage.findToken(hashToken(token));
    const nowMs = this.#nowMs();
    // Tokens may have changed while the answer was on its way: then it is used, but not kept.
    const isCurrent = forgotten === this.#forgotten;
    if (record === undefined || tokenState(record, nowMs) !== "active") {
      if (isCurrent) this.#refuse(token);
      return undefined;
    }
    const { id, expiresAtMs, revokedAtMs, user, garden, scope } = record;
    // Mostly both have one name; then one text is kept, and not two that are equal.
    const caller = { credential: id, user, garden: garden === user ? user : garden, scope };
    if (isCurrent) {
      const known = { id, expiresAtMs, revokedAtMs, caller, usedAtMs: nowMs, gatheredAtMs: 0 };
      if (!this.#known.has(token)) makeRoom(this.#known, knownTokensMax);
      this.#known.set(token, known);
    }
    return caller;
  }
}

/** Maps and sets keep the order of insertion, so the first key is the oldest. */
function makeRoom(
  collection: { size: number; keys(): Iterator<string>; delete(key: string): boolean },
  max: number,
): void {
  if (collection.size < max) return;
  const oldest = collection.keys().next();
  if (!oldest.done) collection.delete(oldest.value);
}

/** Made once, because it is always the same, and so that its problem is rendered once. */
const tokenRefused = new PlantStoreError(
  "unauthenticated",
  "Send a valid token in the header Authorization: Bearer <token>.",
);
