/** The certificate and the private key of a service that speaks TLS itself. */

import { PlantStoreError } from "../domain/errors.ts";
import type { Config } from "../shared/config.ts";
import { describeFileError } from "../shared/system-errors.ts";

/** PEM, as the runtime takes it. */
export interface Certificate {
  /** With the certificates that lead to an authority, if there are any. */
  readonly cert: string;
  readonly key: string;
  readonly expiresAtMs: number;
  readonly lifetimeMs: number;
}

/** Fails with `invalid-request`, in one line, if the files don't hold a pair that can be used. */
export async function readCertificate(files: NonNullable<Config["tls"]>): Promise<Certificate> {
  const [cert, key] = await Promise.all([readPem("cert", files.cert), readPem("key", files.key)]);
  // Not imported above: a service without TLS starts faster.
  const { X509Certificate } = await import("node:crypto");
  const { createSecureContext } = await import("node:tls");
  try {
    createSecureContext({ cert, key });
    const { validFrom, validTo } = new X509Certificate(cert);
    const expiresAtMs = Date.parse(validTo);
    return { cert, key, expiresAtMs, lifetimeMs: expiresAtMs - Date.parse(validFrom) };
  } catch (cause) {
    const pair = `--tls-cert ${files.cert} and --tls-key ${files.key}`;
    const needed = "a certificate and its private key, in PEM form and without a passphrase";
    throw new PlantStoreError("invalid-request", `${pair} are not ${needed}.`, { cause });
  }
}

async function readPem(kind: "cert" | "key", path: string): Promise<string> {
  return Bun.file(path)
    .text()
    .catch((error) => {
      const reason = `cannot be read: ${describeFileError("read", error)}`;
      throw new PlantStoreError("invalid-request", `--tls-${kind} ${path} ${reason}.`);
    });
}
