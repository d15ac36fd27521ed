/**
 * Who is signed in. The client asks here for a token: before its first request, and again when the
 * service refuses the token. Its requests wait until somebody has signed in.
 */
import { signal } from "@preact/signals";
import { cleanToken, findTokenError } from "../src/auth/opaque-token.ts";
import { Api, type ApiOptions, describeError, hasCode, type Me } from "./api.ts";
import { Task } from "./message.ts";
import { storageKey } from "./shared-token.ts";

const expired = "Your token has expired or was revoked. Sign in with another one to continue.";
const refused = "Plant Store doesn’t accept this token. It may be mistyped, expired or revoked.";
const otherGarden = "This token opens another garden. To switch to it, sign out first.";

export class Session {
  readonly api: Api;
  #token: string;
  /** The garden that the page shows, once that's known. */
  #garden: string | undefined;
  #signedIn = Promise.withResolvers<void>();
  #asking: Promise<string> | undefined;

  readonly isSignedIn = signal(false);
  /** Why somebody has to sign in again. */
  readonly reason = signal("");
  /** What is wrong with the token that was typed. */
  readonly error = signal("");
  readonly signingIn = new Task();
  /** The name that a password manager keeps the token under. */
  readonly account = signal("");
  /** Whether the service responds. */
  readonly isConnected = signal(true);

  constructor(
    readonly options: Pick<ApiOptions, "url" | "fetch">,
    /** The tab's storage has the token only if its owner wants to stay signed in. */
    readonly storage: Pick<Storage, "getItem" | "setItem" | "removeItem"> | undefined,
  ) {
    this.#token = storage?.getItem(storageKey) ?? "";
    this.isSignedIn.value = this.#token !== "";
    this.api = new Api({
      ...options,
      onContact: (isReached) => {
        this.isConnected.value = isReached;
      },
      // The page's two clients may ask at the same time.
      token: () => {
        this.#asking ??= this.#findToken().finally(() => {
          this.#asking = undefined;
        });
        return this.#asking;
      },
    });
  }

  /** Empty while nobody is signed in. */
  get token(): string {
    return this.isSignedIn.value ? this.#token : "";
  }

  async #findToken(): Promise<string> {
    // A proxy may have refused the request, not the service.
    const me = this.#token ? await this.#findMe(this.#token) : undefined;
    if (me) this.#garden = me.garden;
    else await this.#askForToken(this.#token && expired);
    return this.#token;
  }

  async signIn(text: string, isKept: boolean): Promise<void> {
    await this.signingIn.run(async () => {
      this.error.value = "";
      this.error.value = await this.#try(cleanToken(text), isKept).catch(describeError);
    });
  }

  /** Forgets the token. The caller then loads the page again, which forgets everything else. */
  signOut(): void {
    this.storage?.removeItem(storageKey);
  }

  /** Returns what is wrong. After a revocation, any token to the same garden goes on. */
  async #try(token: string, isKept: boolean): Promise<string> {
    if (token === "") return "Paste a token first.";
    const typo = findTokenError(token);
    if (typo !== undefined) return `This ${typo}`;
    const me = await this.#findMe(token);
    if (me === undefined) return refused;
    const { user, garden } = me;
    if (garden !== (this.#garden ?? garden)) return otherGarden;
    this.account.value = `${user} in ${garden}`;
    this.#garden = garden;
    this.#token = token;
    if (isKept) this.storage?.setItem(storageKey, token);
    this.#signedIn.resolve();
    return "";
  }

  /** What a token opens. Absent if the service refuses it. */
  async #findMe(token: string): Promise<Me | undefined> {
    try {
      return await new Api({ ...this.options, token }).me();
    } catch (error) {
      if (!hasCode(error, "unauthenticated")) throw error;
      return undefined;
    }
  }

  async #askForToken(reason: string): Promise<void> {
    this.reason.value = reason;
    this.isSignedIn.value = false;
    this.#signedIn = Promise.withResolvers();
    await this.#signedIn.promise;
    this.isSignedIn.value = true;
  }
}
