/**
 * Reads the URL of a PostgreSQL database. No message of this file holds a password. It doesn't
 * import `pg`, which a service on SQLite never loads.
 */
import { PlantStoreError } from "../../domain/errors.ts";

/** They mean the same as in PostgreSQL's own tools. */
const tlsModes = ["disable", "prefer", "require", "verify-ca", "verify-full"] as const;

export interface DatabaseUrl {
  /** A name, an address, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string | undefined;
  readonly tls: (typeof tlsModes)[number];
  /** A file with the certificates of the authorities to trust, instead of the usual ones. */
  readonly rootCertificatePath: string | undefined;
  readonly applicationName: string;
}

/** Fails with `invalid-request`, without the URL's secrets in the message. */
export function parseUrl(text: string): DatabaseUrl {
  if (/^[^:]+:\/\/(?:[^/?#]*@)?[^@/?#]*,[^@/?#]*(?:[/?#]|$)/.test(text)) {
    throw refusal(
      "it names several hosts, and the service connects to one address: put HAProxy, a managed " +
        "endpoint, a service or PgBouncer in front of them, and name that",
    );
  }
  const url = /^postgres(?:ql)?:\/\//i.test(text) ? URL.parse(text) : null;
  // With a plain `/`, `#` or `?`, a password would be taken for what comes after it.
  if (url?.hash !== "" || url.pathname.includes("/", 1) || url.search.includes("@")) {
    throw refusal("it is not of the form postgres://user:password@host:5432/database");
  }
  const parameters = readParameters(url.searchParams);
  return {
    host: decode(url.hostname).replace(/^\[(.*)\]$/, "$1") || "localhost",
    port: Number(url.port || 5432),
    user: decode(url.username) || undefined,
    password: decode(url.password) || undefined,
    database: decode(url.pathname.slice(1)) || undefined,
    tls: readTls(parameters.get("sslmode") ?? "prefer"),
    rootCertificatePath: parameters.get("sslrootcert"),
    applicationName: parameters.get("application_name") ?? "plantstore",
  };
}

/** The address as it may be shown: user, host and database, and nothing else. */
export function maskUrl(url: string): string {
  try {
    const { user, host, port, database = "" } = parseUrl(url);
    const prefix = user === undefined ? "" : `${encodeURIComponent(user)}@`;
    const isIPv6 = host.includes(":");
    const shownHost = isIPv6 ? `[${host}]` : encodeURIComponent(host);
    return `postgres://${prefix}${shownHost}:${port}/${encodeURIComponent(database)}`;
  } catch {
    return "the PostgreSQL database";
  }
}

const knownParameters = ["sslmode", "sslrootcert", "application_name"];

function readParameters(sent: Iterable<[string, string]>): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const [name, value] of sent) {
    if (!knownParameters.includes(name) || parameters.has(name)) {
      const problem = parameters.has(name) ? "comes twice" : "is not known";
      throw refusal(
        `its parameter ${JSON.stringify(name)} ${problem}; there are ${knownParameters.join(", ")}`,
      );
    }
    parameters.set(name, value);
  }
  return parameters;
}

function readTls(text: string): DatabaseUrl["tls"] {
  const mode = tlsModes.find((each) => each === text);
  if (mode) return mode;
  throw refusal(`its sslmode must be one of ${tlsModes.join(", ")}, not ${JSON.stringify(text)}`);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refusal("a percent sign in it must be followed by two hexadecimal digits (%25 is a %)");
  }
}

function refusal(reason: string): PlantStoreError {
  return new PlantStoreError(
    "invalid-request",
    `The URL of the database cannot be read: ${reason}.`,
  );
}
