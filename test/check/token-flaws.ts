/** Flaws of tokens and of who may do what. */
import { headerOf, type Serve, type WireRequest } from "./broken-service.ts";
import {
  asCaller,
  asks,
  draftOf,
  type Flaws,
  isCreate,
  isList,
  make,
  onStatus,
  rewrites,
  says,
  tokenOf,
  when,
  withHeader,
  without,
  withStatus,
} from "./flaw.ts";

const authorization = (request: WireRequest) => headerOf(request, "authorization") ?? "";
const isReading = (request: WireRequest, read: string | undefined) => tokenOf(request) === read;

/** Reads a token from where none may be; lends the one of the caller to the real service. */
function readsToken(find: (request: WireRequest) => string | null | undefined): Serve {
  return asks((request) => {
    const found = find(request);
    return found ? asCaller(request, found) : request;
  });
}

export const tokenFlaws: Flaws = {
  "every operation without a token is 401": {
    "lets HEAD in": when((request) => request.method === "HEAD", says(200)),
    "answers 403": onStatus(401, withStatus(403)),
  },
  "401 without a token challenges with the realm, and without an error": {
    "has no WWW-Authenticate": onStatus(401, without("WWW-Authenticate")),
    "says invalid_token": onStatus(401, (answer) =>
      withHeader(answer, "WWW-Authenticate", 'Bearer realm="plants", error="invalid_token"'),
    ),
  },
  "401 with a token says invalid_token": {
    "does not say so": onStatus(401, (answer) =>
      withHeader(answer, "WWW-Authenticate", 'Bearer realm="plants"'),
    ),
  },
  "a token with one character changed is 401": {
    "looks at the beginning only": async (request, forward, { first }) =>
      forward(tokenOf(request).startsWith(first.slice(0, 20)) ? asCaller(request, first) : request),
    "does not look at the end": async (request, forward, { first }) =>
      forward(tokenOf(request).startsWith(first) ? asCaller(request, first) : request),
  },
  "the body of 401 is the same for an unknown and a malformed token": {
    "tells them apart": when(
      (request) => tokenOf(request).length === 11,
      onStatus(
        401,
        rewrites((problem) => ({ ...problem, detail: "The token is malformed." })),
      ),
    ),
  },
  "the case of the scheme does not matter": {
    matters: when((request) => /^bearer/.test(authorization(request)), says(401)),
  },
  "another scheme is 401": {
    "takes any scheme": readsToken((request) => /^Token (.+)$/.exec(authorization(request))?.[1]),
    "takes none": readsToken((request) => /^(plant_\w+)$/.exec(authorization(request))?.[1]),
  },
  "two tokens are 401": {
    "takes the first": readsToken((request) =>
      request.headers.filter(([name]) => name === "Authorization").length > 1
        ? tokenOf(request)
        : undefined,
    ),
  },
  "a token in the query is not read": {
    "is read": when(isList, async (request, forward) => {
      const token = /access_token=(\w+)/.exec(request.target)?.[1];
      const target = request.target.replace(/access_token=\w+&?/, "");
      return forward(token ? asCaller({ ...request, target }, token) : request);
    }),
  },
  "a token in the body is not read": {
    "is read": readsToken((request) => draftOf(request)?.access_token),
  },
  "a token that may only read may list": {
    "may do nothing": async (request, forward, { read }) =>
      isReading(request, read) ? make(403) : forward(request),
  },
  "a token that may only read is 403 on a create and a delete": {
    "may write": async (request, forward, { first, read }) =>
      forward(isReading(request, read) ? asCaller(request, first) : request),
    "is 401": onStatus(403, withStatus(401)),
  },
  "403 says insufficient_scope": {
    "does not": onStatus(403, without("WWW-Authenticate")),
  },
  "a create that is 403 creates nothing": {
    "creates a plant": async (request, forward, { first, read }) => {
      if (isCreate(request) && isReading(request, read)) {
        await forward(asCaller(request, first));
      }
      return forward(request);
    },
  },
};
