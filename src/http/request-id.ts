/** The id of a request: the caller's own where it is well-formed, else a new one. */
import { randomBytes } from "node:crypto";

const form = /^[\w.-]{1,128}$/;

/** Ids of one process share a random start and count up: unique, and cheap on a hot path. */
export function createRequestIds(): (headers: Headers) => string {
  const start = randomBytes(6).toString("hex");
  let count = 0;
  return (headers) => {
    const given = headers.get("x-request-id");
    return given !== null && form.test(given) ? given : `${start}-${(++count).toString(36)}`;
  };
}
