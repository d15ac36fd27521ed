/** The id of a request: the caller's own where it is well-formed, else a new one. */

const form = /^[\w.-]{1,128}$/;
/** An id is logged, and a token never is: nor is most of one that was put into the wrong place. */
const token = /plant_[0-9a-z]{20}/i;

/** Ids of one thread share a random start and count up: unique, and cheap on a hot path. */
export function createRequestIds(): (headers: Headers) => string {
  const start = crypto.randomUUID().slice(-12);
  let count = 0;
  return (headers) => {
    const given = headers.get("x-request-id");
    const isTaken = given !== null && form.test(given) && !token.test(given);
    return isTaken ? given : `${start}-${(++count).toString(36)}`;
  };
}
