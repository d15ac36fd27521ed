/** Opaque tokens: how one is issued, checked for typing errors, and hashed. */
import type { Scope } from "../domain/caller.ts";
import type { TokenStorage } from "../domain/ports.ts";
import type { TokenRecord } from "../domain/token.ts";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const unbiasedBytes = 256 - (256 % alphabet.length);
const prefix = "plant_";
/** The same for all tokens of a garden: load balancers send its requests to one instance by them. */
const gardenCharacters = 4;
/** 39 characters of 62 carry 232 bits. */
const secretCharacters = 39;
const checksumCharacters = 6;
const restCharacters = gardenCharacters + secretCharacters + checksumCharacters;
const form = new RegExp(`^${prefix}[0-9A-Za-z]{${restCharacters}}$`);
const longRun = new RegExp(`[0-9A-Za-z]{${restCharacters},}`, "g");

const tokenIdCharacters = 10;

export interface NewToken {
  readonly user: string;
  /** The user's own unless given. */
  readonly garden?: string | undefined;
  readonly scope?: Scope | undefined;
  readonly expiresAtMs?: number | undefined;
  readonly note?: string | undefined;
}

/** Makes a token and stores its hash. The token itself is only in what this returns. */
export async function issueToken(
  storage: Pick<TokenStorage, "addToken">,
  { user, garden = user, scope = "write", expiresAtMs, note = "" }: NewToken,
  nowMs: number,
): Promise<{ token: string; record: TokenRecord }> {
  const token = makeToken(garden);
  const record: TokenRecord = {
    id: makeIdentifier(tokenIdCharacters),
    hash: hashToken(token),
    user,
    garden,
    scope,
    note,
    createdAtMs: nowMs,
    expiresAtMs,
    revokedAtMs: undefined,
    lastUsedAtMs: undefined,
  };
  await storage.addToken(record);
  return { token, record };
}

export function makeToken(garden: string): string {
  const text = prefix + gardenStart(garden) + makeIdentifier(secretCharacters);
  return text + checksum(text);
}

/** How tokens of a garden start. It's no secret: `/me` says which garden a token opens. */
function gardenStart(garden: string): string {
  const number = Number.parseInt(hash(garden).slice(0, 12), 16);
  return toAlphabet(number, gardenCharacters);
}

/** Random characters of the tokens' alphabet, from a CSPRNG. */
function makeIdentifier(characters: number): string {
  let text = "";
  while (text.length < characters) {
    for (const byte of crypto.getRandomValues(new Uint8Array(characters - text.length))) {
      // Bytes above the last multiple of 62 would make the first characters likelier.
      if (byte < unbiasedBytes) text += alphabet[byte % alphabet.length];
    }
  }
  return text;
}

/** Whether the text could be a token. Distinguishes a mistyped token from a refused one. */
export function isTokenForm(text: string): boolean {
  const checked = text.slice(0, -checksumCharacters);
  return form.test(text) && text.slice(-checksumCharacters) === checksum(checked);
}

/** Whether a part of the text is a token without its prefix, which is as secret as the whole. */
export function holdsSecret(text: string): boolean {
  for (const [run] of text.matchAll(longRun)) {
    for (let from = 0; from + restCharacters <= run.length; from++) {
      const end = from + restCharacters - checksumCharacters;
      // A checksum has 32 bits, so its first digit is low. That spares most of the work.
      if (run.charAt(end) >= "5") continue;
      if (run.startsWith(checksum(prefix + run.slice(from, end)), end)) return true;
    }
  }
  return false;
}

/**
 * A token as people paste it: with blanks or quotes around it, from a header, or with the
 * `export PLANTSTORE_TOKEN=` that the first start prints before it.
 */
export function cleanToken(text: string): string {
  return text
    .trim()
    .replace(/^(?:export\s+)?PLANTSTORE_TOKEN\s*=\s*/, "")
    .replace(/^(["'])(.*)\1$/, "$2")
    .trim()
    .replace(/^(?:authorization:\s*)?bearer\s+/i, "");
}

/**
 * What is wrong with a token that can't be valid, after its name: `… has a typo`. What doesn't look
 * like ours may be valid, such as a JWT.
 */
export function findTokenError(token: string): string | undefined {
  const isOurs = token.startsWith(prefix);
  if (isOurs ? isTokenForm(token) : /^[\x21-\x7e]+$/.test(token)) return undefined;
  if (form.test(token)) return "has a typo: its checksum doesn't match. Copy it again.";
  return "is not a whole token. Copy all of it again.";
}

/** What storage knows of a token. */
export function hashToken(token: string): string {
  return hash(token);
}

/** SHA-256, in hexadecimal. */
function hash(text: string): string {
  // Importing it above would take 20 ms of every start.
  return process.getBuiltinModule("node:crypto").hash("sha256", text, "hex");
}

function checksum(text: string): string {
  return toAlphabet(crc32(text), checksumCharacters);
}

/** The last digits of a number, in the tokens' alphabet. */
function toAlphabet(number: number, characters: number): string {
  let rest = number;
  let text = "";
  while (text.length < characters) {
    text = alphabet[rest % alphabet.length] + text;
    rest = Math.floor(rest / alphabet.length);
  }
  return text;
}

/** What each byte adds to a checksum. Made here because zlib takes longer to load. */
const crcTable = Int32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  return sum;
});

/** Of ASCII text. */
function crc32(text: string): number {
  let sum = -1;
  for (let index = 0; index < text.length; index++) {
    sum = (sum >>> 8) ^ (crcTable[(sum ^ text.charCodeAt(index)) & 0xff] ?? 0);
  }
  return ~sum >>> 0;
}
