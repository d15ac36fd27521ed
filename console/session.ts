/**
 * Who is signed in. The client asks here for a token: before its first request, and again when the
 * service refuses the token. Its requests wait until somebody has signed in.
 */
import { signal } from "@preact/signals";
import { hasCode } from "../client/problem-error.ts";
import { cleanToken, findTokenError } from "../src/auth/opaque-token.ts";
import { Api, type ApiOptions, describeError, type Me } from "./api.ts";

const expired = "Your token has expired or was revoked. Sign in with another one to continue.";
const refused = "Plant Store doesn’t accept this token. It may be mistyped, expired or revoked.";
const otherGarden = "This token opens another garden. To switch to it, sign out first.";

/** The tab's storage has the token only if its owner wants to stay signed in. */
const storageKey = "plantstore-token";
type TokenStorage = Pick<Storage, "getItem" | "setItem" | "removeItem">;

export class Session {
  readonly api: Api;
  readonly #options: Pick<ApiOptions, "url" | "fetch">;
  readonly #storage: TokenStorage | undefined;
  #token: string;
  /** Whose garden the page shows, once that's known. */
  #owner: Me | undefined;
  #signedIn = Promise.withResolvers<void>();

  readonly isSignedIn = signal(false);
  /** Whether there is something to sign out of. */
  readonly hasToken = signal(false);
  /** Why somebody has to sign in again. */
  readonly reason = signal("");
  /** What is wrong with the token that was typed. */
  readonly error = signal("");
  readonly isBusy = signal(false);
  /** Whether the service responds. */
  readonly isConnected = signal(true);

  constructor(options: Pick<ApiOptions, "url" | "fetch">, storage: TokenStorage | undefined) {
    this.#options = options;
    this.#storage = storage;
    this.#token = storage?.getItem(storageKey) ?? "";
    this.isSignedIn.value = this.hasToken.value = this.#token !== "";
    this.api = new Api({
      ...options,
      onContact: (isReached) => {
        this.isConnected.value = isReached;
      },
      token: async () => {
        if (this.#token === "") await this.#askForToken("");
        else if (!(await this.#isAccepted())) await this.#askForToken(expired);
        return this.#token;
      },
    });
  }

  async signIn(text: string, isKept: boolean): Promise<void> {
    if (this.isBusy.value) return;
    const token = cleanToken(text);
    const typo = findTokenError(token);
    if (token === "") this.error.value = "Paste a token first.";
    else if (typo !== undefined) this.error.value = `This ${typo}`;
    else {
      this.error.value = "";
      this.isBusy.value = true;
      this.error.value = (await this.#try(token, isKept)) ?? "";
      this.isBusy.value = false;
    }
  }

  /** Forgets the token. Whoever calls it loads the page again, which forgets everything else. */
  signOut(): void {
    this.#storage?.removeItem(storageKey);
  }

  /** Returns what is wrong. After a revocation, any token to the same garden goes on. */
  async #try(token: string, isKept: boolean): Promise<string | undefined> {
    try {
      const me = await new Api({ ...this.#options, token }).me();
      if (this.#owner && me.garden !== this.#owner.garden) return otherGarden;
      this.#owner = me;
      this.#token = token;
      if (isKept) this.#storage?.setItem(storageKey, token);
      this.#signedIn.resolve();
      return undefined;
    } catch (error) {
      return hasCode(error, "unauthenticated") ? refused : describeError(error);
    }
  }

  /** A proxy may have refused the request, not the service. */
  async #isAccepted(): Promise<boolean> {
    try {
      this.#owner = await new Api({ ...this.#options, token: this.#token }).me();
      return true;
    } catch (error) {
      if (!hasCode(error, "unauthenticated")) throw error;
      return false;
    }
  }

  async #askForToken(reason: string): Promise<void> {
    this.reason.value = reason;
    this.isSignedIn.value = false;
    this.#signedIn = Promise.withResolvers();
    await this.#signedIn.promise;
    this.isSignedIn.value = this.hasToken.value = true;
  }
}
