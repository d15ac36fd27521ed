/** The text of an opaque token: how one is made, checked for typing errors, and hashed. */
import { hash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
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
  for (let index = 0; index < characters; index++) text += alphabet[randomInt(alphabet.length)];
  return text;
}

/** Whether the text could be a token: lets tools tell a mistyped token from a refused one. */
export function isTokenForm(text: string): boolean {
  const secret = text.slice(0, -checksumCharacters);
  return form.test(text) && text.slice(-checksumCharacters) === checksum(secret);
}

/** What storage knows of a token. */
export function hashToken(token: string): string {
  return hash("sha256", token, "hex");
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
