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

const defaultPort = 5432;
/** The last @ before the path ends the password, so a password may contain one. */
const form =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/?#]*)(?::(?<password>[^/?#]*))?@)?(?<host>[^@/?#]*)(?:\/(?<database>[^/?#]*))?(?:\?(?<parameters>[^#]*))?$/i;

/** Fails with `invalid-request`, without the URL's secrets in the message. */
export function parseUrl(url: string): DatabaseUrl {
  const parts = form.exec(url)?.groups;
  if (parts === undefined) {
    throw refusal("it is not of the form postgres://user:password@host:5432/database");
  }
  const address = parseHost(parts.host ?? "");
  const parameters = readParameters(parts.parameters ?? "");
  return {
    ...address,
    user: decode(parts.user) || undefined,
    password: decode(parts.password) || undefined,
    database: decode(parts.database) || undefined,
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

function parseHost(text: string): Pick<DatabaseUrl, "host" | "port"> {
  if (text.includes(",")) {
    throw refusal(
      "it names several hosts, and the service connects to one address: put HAProxy, a managed " +
        "endpoint, a service or PgBouncer in front of them, and name that",
    );
  }
  const parts = /^(?:\[(?<address>[\da-f:.%]+)\]|(?<name>[^:[\]]*))(?::(?<port>\d{1,5}))?$/i.exec(
    text,
  )?.groups;
  const port = Number(parts?.port ?? defaultPort);
  if (parts === undefined || port < 1 || port > 65_535) {
    throw refusal("its host must be a name or an address, with or without a port");
  }
  return { host: parts.address ?? (decode(parts.name) || "localhost"), port };
}

const knownParameters = ["sslmode", "sslrootcert", "application_name"];

function readParameters(text: string): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(text)) {
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

function decode(text: string | undefined): string {
  try {
    return decodeURIComponent(text ?? "");
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
