/** A JWT issuer and an authenticator that trusts it, on a clock that only the test moves. */
import { setSystemTime } from "bun:test";
import { Authenticator } from "../src/auth/authenticator.ts";
import { type JwtIssuer, JwtVerifier } from "../src/auth/jwt.ts";
import { sign, startIssuer } from "./openid-issuer.ts";

/** A real issuer with one key, for the tests of a file: `beforeEach(reset)`, `afterAll(stop)`. */
export async function openJwtFixture() {
  const issuer = startIssuer();
  const key = await issuer.makeKey();
  const clock = {
    get nowMs() {
      return Date.now();
    },
    set nowMs(timeMs: number) {
      setSystemTime(timeMs);
    },
  };
  let ask: (token: string) => Promise<unknown>;

  /** Authenticates with other settings from now on. */
  function trust(settings: Partial<JwtIssuer>): JwtVerifier {
    const jwts = new JwtVerifier({ ...issuer.trust, ...settings });
    ask = createAsk(jwts);
    return jwts;
  }
  function reset(): void {
    clock.nowMs = 1_800_000_000_000;
    issuer.respond = undefined;
    issuer.asked = 0;
    issuer.published = [key.publicJwk];
    trust({});
  }
  /** The claims of a good token, with some replaced. */
  const good = (others: Record<string, unknown> = {}) => issuer.claims(clock.nowMs, others);

  return {
    issuer,
    key,
    clock,
    trust,
    good,
    reset,
    async stop() {
      setSystemTime();
      await issuer.stop();
    },
    ask: (token: string) => ask(token),
    askWith: async (others: Record<string, unknown>, header: Record<string, unknown> = {}) =>
      ask(await sign(key, good(others), header)),
  };
}

/** Returns the caller of a token, or the code of its refusal. There are no opaque tokens. */
function createAsk(jwts: JwtVerifier): (token: string) => Promise<unknown> {
  const noTokens = {
    findToken: async () => undefined,
    countTokenChanges: async () => 0,
    noteTokenUses: async () => {},
  };
  const authenticator = new Authenticator(noTokens, Date.now, jwts);
  return (token) => authenticator.authenticate(token).catch((error) => error.code ?? error);
}
