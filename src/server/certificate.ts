/** The certificate that the service shows and its private key, read from files and checked. */
import type { Config } from "../config.ts";
import { PlantStoreError } from "../domain/errors.ts";
import { whyNot } from "../storage/failures.ts";

/** PEM, as the runtime takes it. */
export interface Certificate {
  /** With the certificates that lead to an authority, if there are any. */
  readonly cert: string;
  readonly key: string;
  readonly expiresAtMs: number;
  readonly lifetimeMs: number;
}

/** Of TLS 1.2, only suites with authenticated encryption; TLS 1.3 has no others. */
export const ciphers = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"]
  .flatMap((suite) => [`ECDHE-ECDSA-${suite}`, `ECDHE-RSA-${suite}`])
  .join(":");

/** Fails with `invalid-request`, in one line, if the files don't hold a pair that can be used. */
export async function readCertificate(files: NonNullable<Config["tls"]>): Promise<Certificate> {
  const [cert, key] = await Promise.all([readPem("cert", files.cert), readPem("key", files.key)]);
  // Not imported above: a service without TLS starts faster.
  const { createPrivateKey, X509Certificate } = await import("node:crypto");
  const { createSecureContext } = await import("node:tls");
  const leaf = orRefuse(`--tls-cert ${files.cert} holds no certificate in PEM form`, () => {
    return new X509Certificate(cert);
  });
  const privateKey = orRefuse(
    `--tls-key ${files.key} holds no private key in PEM form that needs no passphrase`,
    () => createPrivateKey(key),
  );
  const mismatch = `--tls-key ${files.key} is not the key of --tls-cert ${files.cert}`;
  if (!leaf.checkPrivateKey(privateKey)) throw refuse(mismatch);
  orRefuse(`--tls-cert ${files.cert} and --tls-key ${files.key} cannot be used for TLS`, () =>
    createSecureContext({ cert, key }),
  );
  const expiresAtMs = Date.parse(leaf.validTo);
  return { cert, key, expiresAtMs, lifetimeMs: expiresAtMs - Date.parse(leaf.validFrom) };
}

async function readPem(kind: "cert" | "key", path: string): Promise<string> {
  const text = Bun.file(path).text();
  return text.catch((error) => {
    throw refuse(`--tls-${kind} ${path} cannot be read: ${whyNot("read", error)}`);
  });
}

function orRefuse<Result>(reason: string, use: () => Result): Result {
  try {
    return use();
  } catch (cause) {
    throw refuse(reason, cause);
  }
}

function refuse(reason: string, cause?: unknown): PlantStoreError {
  return new PlantStoreError("invalid-request", `${reason}.`, { cause });
}
