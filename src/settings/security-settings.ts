/** The settings of TLS and of JWTs. Both are off while nothing is set. */
import { PlantStoreError } from "../domain/errors.ts";
import { isTrustworthyAddress, type JwtIssuer, jwtAlgorithms } from "../domain/issuer.ts";
import { integerBetween, type Setting } from "./setting.ts";

export interface SecuritySettings {
  readonly tlsCert: string;
  readonly tlsKey: string;
  readonly jwtIssuer: string;
  readonly jwtAudience: readonly string[];
  readonly jwtJwksUrl: string;
  readonly jwtAlgorithms: readonly string[];
  readonly jwtGardenClaim: string;
  readonly jwtClockSkewSeconds: number;
}

export const securitySettings: {
  readonly [Name in keyof SecuritySettings]: Setting<SecuritySettings[Name]>;
} = {
  tlsCert: {
    flag: "tls-cert",
    environment: "PLANTSTORE_TLS_CERT",
    placeholder: "PATH",
    fallback: "",
    help: "certificate and its chain (PEM), for https; SIGHUP reads it again",
    parse: (text) => text,
    expected: "the path of a file",
  },
  tlsKey: {
    flag: "tls-key",
    environment: "PLANTSTORE_TLS_KEY",
    placeholder: "PATH",
    fallback: "",
    help: "the certificate's private key (PEM)",
    parse: (text) => text,
    expected: "the path of a file",
  },
  jwtIssuer: {
    flag: "jwt-issuer",
    environment: "PLANTSTORE_JWT_ISSUER",
    placeholder: "URL",
    fallback: "",
    help: "the OpenID issuer whose JWTs are accepted as tokens",
    parse: (text) => (isTrustworthyAddress(text) && !text.includes("?") ? text : whenEmpty(text)),
    expected: "an address such as https://login.example; http only on this machine",
  },
  jwtAudience: {
    flag: "jwt-audience",
    environment: "PLANTSTORE_JWT_AUDIENCE",
    placeholder: "LIST",
    fallback: "",
    help: "what JWTs must be meant for (claim aud), one of several by commas",
    parse: (text) => (text === "" ? [] : parseList(text)),
    expected: "names such as https://plants.example, separated by commas",
  },
  jwtJwksUrl: {
    flag: "jwt-jwks-url",
    environment: "PLANTSTORE_JWT_JWKS_URL",
    placeholder: "URL",
    fallback: "",
    help: "the issuer's keys; its discovery document says where unless given",
    parse: (text) => (isTrustworthyAddress(text) ? text : whenEmpty(text)),
    expected: "an address such as https://login.example/keys; http only on this machine",
  },
  jwtAlgorithms: {
    flag: "jwt-algorithms",
    environment: "PLANTSTORE_JWT_ALGORITHMS",
    placeholder: "LIST",
    fallback: "RS256,ES256,EdDSA",
    help: "signatures that are accepted, by commas",
    parse: (text) =>
      parseList(text)?.every((name) => jwtAlgorithms.includes(name)) ? parseList(text) : undefined,
    expected: `some of ${jwtAlgorithms.join(", ")}, separated by commas`,
  },
  jwtGardenClaim: {
    flag: "jwt-garden-claim",
    environment: "PLANTSTORE_JWT_GARDEN_CLAIM",
    placeholder: "NAME",
    fallback: "sub",
    help: "the claim of JWTs that names the garden",
    parse: (text) => (/^\S{1,200}$/.test(text) ? text : undefined),
    expected: "the name of a claim",
  },
  jwtClockSkewSeconds: {
    flag: "jwt-clock-skew-seconds",
    environment: "PLANTSTORE_JWT_CLOCK_SKEW_SECONDS",
    placeholder: "NUMBER",
    fallback: "30",
    help: "how far the issuer's clock may be off",
    ...integerBetween(0, 300),
  },
};

/** Paths of PEM files. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

type Read = <Name extends keyof SecuritySettings>(name: Name) => SecuritySettings[Name];

export function readTlsFiles(read: Read): TlsFiles | undefined {
  const cert = read("tlsCert");
  const key = read("tlsKey");
  requireTogether({ "--tls-cert": cert, "--tls-key": key });
  return cert === "" ? undefined : { cert, key };
}

export function readIssuer(read: Read): JwtIssuer | undefined {
  const issuer = read("jwtIssuer");
  const audiences = read("jwtAudience");
  const keysUrl = read("jwtJwksUrl");
  const algorithms = read("jwtAlgorithms");
  const gardenClaim = read("jwtGardenClaim");
  const clockSkewSeconds = read("jwtClockSkewSeconds");
  requireTogether({ "--jwt-issuer": issuer, "--jwt-audience": audiences.join() });
  if (keysUrl !== "") requireTogether({ "--jwt-jwks-url": keysUrl, "--jwt-issuer": issuer });
  if (issuer === "") return undefined;
  return {
    issuer,
    audiences,
    keysUrl: keysUrl === "" ? undefined : keysUrl,
    algorithms,
    gardenClaim,
    clockSkewSeconds,
  };
}

/** One of them alone would leave open what it is to protect. */
function requireTogether(values: Readonly<Record<string, string>>): void {
  const names = Object.keys(values);
  const missing = names.filter((name) => values[name] === "");
  if (missing.length === 0 || missing.length === names.length) return;
  throw new PlantStoreError(
    "invalid-request",
    `${names.join(" and ")} belong together; ${missing.join()} is missing.`,
  );
}

function whenEmpty(text: string): "" | undefined {
  return text === "" ? "" : undefined;
}

function parseList(text: string): readonly string[] | undefined {
  const names = text.split(",").map((name) => name.trim());
  return names.every((name) => name !== "") ? names : undefined;
}
