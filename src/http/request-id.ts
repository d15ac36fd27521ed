/** The id of a request: the caller's own where it is well-formed, else a new one. */

const form = /^[\w.-]{1,128}$/;

/** Ids of one thread share a random start and count up: unique, and cheap on a hot path. */
export function createRequestIds(): (headers: Headers) => string {
  const start = crypto.randomUUID().slice(-12);
  let count = 0;
  return (headers) => {
    const given = headers.get("x-request-id");
    return given !== null && form.test(given) ? given : `${start}-${(++count).toString(36)}`;
  };
}
