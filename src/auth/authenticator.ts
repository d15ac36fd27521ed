/**
 * From the text of a credential to its caller. Caches what storage said, so that a hot token costs
 * no query; it doesn't know how the credential arrived.
 */

import type { Caller } from "../domain/caller.ts";
import { refusedToken } from "../domain/errors.ts";
import type { TokenStorage, TokenUse } from "../domain/ports.ts";
import { tokenState } from "../domain/token.ts";
import { BoundedMap } from "../shared/bounded-map.ts";
import type { Clocks, Moment } from "../shared/clocks.ts";
import { isJwtForm, type JwtVerifier } from "./jwt.ts";
import { hashToken } from "./opaque-token.ts";

const knownTokensMax = 131_072;
/** Per transaction, so that it doesn't hold up other writers. */
const notedUsesMax = 1_000;
/** The cache is used only if the last successful refresh is at most this old. */
const trustMs = 4_000;

/** As small as possible: there may be a hundred thousand. */
interface KnownToken {
  readonly caller: Caller;
  usedAtMs: number;
  notedAtMs: number;
}

/** One object, so that its response is rendered once. */
export const unauthenticated = refusedToken();

export type RefreshableTokens = Pick<
  TokenStorage,
  "findToken" | "countTokenChanges" | "noteTokenUses"
>;

export class Authenticator {
  /** By the token itself, in memory only: hashing first would take a tenth of a list's time. */
  readonly #known = new BoundedMap<string, KnownToken>(knownTokensMax);
  /** Uses by token id that aren't in storage yet. */
  #uses = new Map<string, number>();
  #changes = -1;
  /** How often the cache was cleared. */
  #clears = 0;
  /** When the last successful refresh began. */
  #confirmedAt: Moment | undefined;

  constructor(
    private readonly storage: RefreshableTokens,
    private readonly clocks: Clocks,
    private readonly jwts?: JwtVerifier,
  ) {}

  /**
   * Throws `unauthenticated`, whether the token is malformed, unknown, expired or revoked, and
   * `unavailable` if storage or the issuer can't tell.
   */
  async authenticate(token: string): Promise<Caller> {
    const cached = this.findCached(token);
    if (cached) return cached;
    return this.jwts && isJwtForm(token) ? this.jwts.verify(token) : this.#lookUp(token);
  }

  /** The cached caller; absent if storage or the issuer must be asked. */
  findCached(token: string): Caller | undefined {
    const known = this.#isConfirmed() ? this.#known.get(token) : undefined;
    if (!known) return this.jwts?.findCached(token);
    const { caller } = known;
    const nowMs = this.clocks.wallMs();
    if (caller.expiresAtMs === undefined || nowMs < caller.expiresAtMs) {
      known.usedAtMs = nowMs;
      return caller;
    }
    // It has expired since.
    this.#collectUse(known);
    this.#known.delete(token);
    return undefined;
  }

  /** The garden of a token that was valid before, for its queue. It may not be valid any more. */
  findGarden(token: string): string | undefined {
    return this.#known.get(token)?.caller.garden ?? this.jwts?.findGarden(token);
  }

  /** Clears the cache if any process added or revoked a token since. */
  async refresh(): Promise<void> {
    const askedAt = this.clocks.now();
    const wasConfirmed = this.#isConfirmed();
    const changes = await this.storage.countTokenChanges();
    // After a gap the same count proves nothing: a standby that took over may have reached it by
    // other changes.
    if (changes !== this.#changes || !wasConfirmed) {
      this.#collectUses();
      this.#known.clear();
      this.#clears++;
    }
    this.#changes = changes;
    this.#confirmedAt = askedAt;
  }

  #isConfirmed(): boolean {
    return this.#confirmedAt !== undefined && this.clocks.msSince(this.#confirmedAt) <= trustMs;
  }

  /** Stores when tokens were last used: rarely, and never on the path of a request. */
  async noteUses(): Promise<void> {
    this.#collectUses();
    if (this.#uses.size === 0) return;
    const uses = this.#uses;
    this.#uses = new Map();
    const list = Array.from(uses, ([id, usedAtMs]): TokenUse => ({ id, usedAtMs }));
    try {
      for (let from = 0; from < list.length; from += notedUsesMax) {
        await this.storage.noteTokenUses(list.slice(from, from + notedUsesMax));
      }
    } catch (error) {
      this.#uses = new Map([...uses, ...this.#uses]);
      throw error;
    }
  }

  #collectUses(): void {
    for (const known of this.#known.values()) this.#collectUse(known);
  }

  #collectUse(known: KnownToken): void {
    if (known.usedAtMs === known.notedAtMs) return;
    known.notedAtMs = known.usedAtMs;
    this.#uses.set(known.caller.credential, known.usedAtMs);
  }

  async #lookUp(token: string): Promise<Caller> {
    const clears = this.#clears;
    const record = await this.storage.findToken(hashToken(token));
    const nowMs = this.clocks.wallMs();
    if (record === undefined || tokenState(record, nowMs) !== "active") throw unauthenticated;
    const { id, expiresAtMs, user, garden, scope } = record;
    const caller = { credential: id, tokenId: id, user, garden, scope, expiresAtMs };
    // Tokens may have changed since storage was asked: then the result is used but not cached.
    if (clears === this.#clears) this.#known.set(token, { caller, usedAtMs: nowMs, notedAtMs: 0 });
    return caller;
  }
}
