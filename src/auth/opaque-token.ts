/** The text of an opaque token: how one is made, checked for typing errors, and hashed. */

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const unbiasedBytes = 256 - (256 % alphabet.length);
const prefix = "plant_";
/** 43 characters of 62 carry 256 bits. */
const secretCharacters = 43;
const checksumCharacters = 6;
const form = new RegExp(`^${prefix}[0-9A-Za-z]{${secretCharacters + checksumCharacters}}$`);

export function makeToken(): string {
  const secret = prefix + makeIdentifier(secretCharacters);
  return secret + checksum(secret);
}

/** Random characters of the tokens' alphabet, from a cryptographically secure source. */
export function makeIdentifier(characters: number): string {
  let text = "";
  while (text.length < characters) {
    for (const byte of crypto.getRandomValues(new Uint8Array(characters - text.length))) {
      // Bytes above the last multiple of 62 would make the first characters likelier.
      if (byte < unbiasedBytes) text += alphabet[byte % alphabet.length];
    }
  }
  return text;
}

/** Whether the text could be a token: lets tools tell a mistyped token from a refused one. */
export function isTokenForm(text: string): boolean {
  const secret = text.slice(0, -checksumCharacters);
  return form.test(text) && text.slice(-checksumCharacters) === checksum(secret);
}

/** What storage knows of a token. */
export function hashToken(token: string): string {
  // Not imported above: with zlib, whose checksum stands below, that took 20 ms of every start.
  return process.getBuiltinModule("node:crypto").hash("sha256", token, "hex");
}

function checksum(secret: string): string {
  let rest = crc32(secret);
  let text = "";
  for (let index = 0; index < checksumCharacters; index++) {
    text = alphabet[rest % alphabet.length] + text;
    rest = Math.floor(rest / alphabet.length);
  }
  return text;
}

/** The checksum of zip and PNG, bit by bit: tokens are short. */
function crc32(text: string): number {
  let sum = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
