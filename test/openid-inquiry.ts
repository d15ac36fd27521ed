/** Who the tokens of an issuer stand for, on a clock that only the test moves. */
import { Authenticator } from "../src/auth/authenticator.ts";
import { JsonWebTokens } from "../src/auth/json-web-tokens.ts";
import type { JwtIssuer } from "../src/domain/issuer.ts";
import { sign, startIssuer } from "./openid-issuer.ts";

/** A real issuer with one key, for the tests of a file: `beforeEach(reset)`, `afterAll(stop)`. */
export async function openInquiry() {
  const issuer = startIssuer();
  const key = await issuer.makeKey();
  const clock = { nowMs: 0 };
  const readClock = () => clock.nowMs;
  let ask: (token: string) => Promise<unknown>;

  /** From now on, by other settings than the usual ones. */
  function trust(settings: Partial<JwtIssuer>): void {
    ask = createAsk(new JsonWebTokens({ ...issuer.trust, ...settings }, readClock), readClock);
  }
  function reset(): void {
    clock.nowMs = 1_800_000_000_000;
    issuer.published = [key.publicJwk];
    trust({});
  }
  /** The claims of a good token, but for those that are given. */
  const good = (others: Record<string, unknown> = {}) => issuer.claims(clock.nowMs, others);

  return {
    issuer,
    key,
    clock,
    trust,
    good,
    reset,
    stop: issuer.stop,
    ask: (token: string) => ask(token),
    askWith: async (others: Record<string, unknown>, header: Record<string, unknown> = {}) =>
      ask(await sign(key, good(others), header)),
  };
}

/** Who a token stands for by these keys, or the code of its refusal. There is no opaque token. */
export function createAsk(
  jwts: JsonWebTokens,
  nowMs: () => number,
): (token: string) => Promise<unknown> {
  const noTokens = {
    findToken: async () => undefined,
    countTokenChanges: async () => 0,
    noteTokenUses: async () => {},
  };
  const authenticator = new Authenticator(noTokens, nowMs, jwts);
  return (token) => authenticator.authenticate(token).catch((error) => error.code ?? error);
}
