/** Reads the URL of a PostgreSQL database. No message that it makes holds a password. */
import { PlantStoreError } from "../../domain/errors.ts";

/** What each means is as in PostgreSQL's own tools. */
const tlsModes = ["disable", "prefer", "require", "verify-ca", "verify-full"] as const;

export interface Host {
  readonly host: string;
  readonly port: number;
}

export interface DatabaseUrl {
  /** At least one. The primary is one of them. */
  readonly hosts: readonly Host[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string | undefined;
  readonly tls: (typeof tlsModes)[number];
  /**
   * A file with the certificates of the authorities that are trusted, instead of the usual ones.
   */
  readonly rootCertificatePath: string | undefined;
  readonly applicationName: string;
}

const defaultPort = 5432;
/** The last @ before the path ends the user and password, so an @ in a password does no harm. */
const form =
  /^postgres(?:ql)?:\/\/(?:(?<user>[^:@/?#]*)(?::(?<password>[^/?#]*))?@)?(?<hosts>[^@/?#]*)(?:\/(?<database>[^/?#]*))?(?:\?(?<parameters>[^#]*))?$/i;

/** Fails with `invalid-request`, in words that hold nothing of the URL's secrets. */
export function parseUrl(url: string): DatabaseUrl {
  const parts = form.exec(url)?.groups;
  if (parts === undefined) {
    throw refusal("it is not of the form postgres://user:password@host:5432/database");
  }
  const parameters = readParameters(parts.parameters ?? "");
  return {
    hosts: (parts.hosts ?? "").split(",").map(parseHost),
    user: decode(parts.user) || undefined,
    password: decode(parts.password) || undefined,
    database: decode(parts.database) || undefined,
    tls: readTls(parameters.get("sslmode") ?? "prefer"),
    rootCertificatePath: parameters.get("sslrootcert"),
    applicationName: parameters.get("application_name") ?? "plantstore",
  };
}

/** The address as it may be shown: who and where, and nothing else of it. */
export function maskUrl(url: string): string {
  try {
    const { user, hosts, database } = parseUrl(url);
    const who = user === undefined ? "" : `${encodeURIComponent(user)}@`;
    return `postgres://${who}${hosts.map(describeHost).join(",")}/${encodeURIComponent(database ?? "")}`;
  } catch {
    return "the PostgreSQL database";
  }
}

export function describeHost({ host, port }: Host): string {
  if (host.startsWith("/")) return `${encodeURIComponent(host)}:${port}`;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

function parseHost(text: string): Host {
  const parts = /^(?:\[(?<address>[\da-f:.%]+)\]|(?<name>[^:[\]]*))(?::(?<port>\d{1,5}))?$/i.exec(
    text,
  )?.groups;
  const port = Number(parts?.port ?? defaultPort);
  if (parts === undefined || port < 1 || port > 65_535) {
    throw refusal("each of its hosts must be a name or an address, with or without a port");
  }
  return { host: parts.address ?? (decode(parts.name) || "localhost"), port };
}

const knownParameters = ["sslmode", "sslrootcert", "target_session_attrs", "application_name"];

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
  const target = parameters.get("target_session_attrs") ?? "read-write";
  if (target !== "read-write" && target !== "primary") {
    throw refusal("its target_session_attrs must be read-write, because plants are written too");
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
