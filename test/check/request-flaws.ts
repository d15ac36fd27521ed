/** Flaws of paths, methods and requests. */
import { headerOf, type Serve, type WireRequest } from "./broken-service.ts";
import {
  answers,
  asks,
  drafts,
  type Flaws,
  isCreate,
  isDelete,
  isList,
  isOn,
  onStatus,
  pathOf,
  queries,
  rewrites,
  says,
  tokenOf,
  when,
  withBody,
  withHeader,
  without,
  withStatus,
} from "./flaw.ts";

const hasNoToken = (request: WireRequest) => tokenOf(request) === "";
const isHead = ({ method }: WireRequest) => method === "HEAD";

/** Takes any type of body for JSON that this test knows. */
function takesType(test: (type: string | undefined) => boolean): Serve {
  return when(
    (request) => isCreate(request) && test(headerOf(request, "content-type")),
    asks((request) => withHeader(request, "Content-Type", "application/json")),
  );
}

const bodyGoesWithHead: Serve = when(isHead, async (request, forward) => {
  const whole = await forward({ ...request, method: "GET" });
  return { ...whole, surplus: whole.body, body: Buffer.alloc(0) };
});

export const requestFlaws: Flaws = {
  "GET /plants is 200": {
    "answers 206 to a page": when(
      ({ method, target }) => method === "GET" && target.endsWith("/plants?limit=1"),
      answers(withStatus(206)),
    ),
  },
  "HEAD /plants is as GET, without a body": {
    "sends a body to HEAD": when(({ target }) => target.includes("/plants"), bodyGoesWithHead),
    "answers HEAD as text": when(
      isHead,
      answers((answer) => withHeader(answer, "Content-Type", "text/plain")),
    ),
  },
  "HEAD of the open paths is as GET, without a body": {
    "sends a body to HEAD of /healthz": when(isOn("HEAD", "/healthz"), bodyGoesWithHead),
    "has no HEAD of /metrics": when(isOn("HEAD", "/metrics"), says(405)),
  },
  "a path of no operation is 404": {
    "takes /plants/ for /plants": when(
      isOn("GET", "/plants/"),
      asks((request) => ({ ...request, target: "/plants?limit=1" })),
    ),
    "does not tell capitals apart": asks((request) => ({
      ...request,
      target: request.target.replace("Plants", "plants"),
    })),
  },
  "another method on /plants is 405, with Allow": {
    "has no Allow": onStatus(405, without("Allow")),
    "answers 404": when(isOn("PUT", "/plants"), says(404)),
    "allows what it does not take": onStatus(405, (answer) =>
      withHeader(answer, "Allow", "GET, HEAD, POST, OPTIONS, PUT"),
    ),
  },
  "another method on /plants/{id} is 405, with Allow": {
    "answers 404": when((request) => request.method === "GET" && !isList(request), says(404)),
  },
  "another method on an open path is 405, with Allow": {
    "takes POST for GET": when(
      isOn("POST", "/readyz"),
      asks((request) => ({ ...request, method: "GET" })),
    ),
  },
  "OPTIONS needs no token": {
    "asks for a token": when(
      (request) => request.method === "OPTIONS" && hasNoToken(request),
      says(401),
    ),
  },
  "a body without Content-Type is 415": {
    "takes it for JSON": takesType((type) => type === undefined),
  },
  "a body of another type than application/json is 415": {
    "takes any type": takesType((type) => type !== undefined),
    "takes a JSON patch": takesType((type) => type?.includes("json-patch") === true),
  },
  "a body in another charset than UTF-8 is 415": {
    "does not look at the charset": takesType((type) => type?.includes("latin1") === true),
  },
  "a body that is encoded is 415": {
    "does not look at the encoding": asks(without("Content-Encoding")),
  },
  "charset=utf-8 may follow the type": {
    "compares the type as a whole": when(
      (request) => headerOf(request, "content-type")?.includes("charset") === true,
      says(415),
    ),
  },
  "a body that is not JSON is 400": {
    "stops reading behind the first object": when(
      isCreate,
      asks((request) => withBody(request, request.body.toString().replace(/\}.*$/, "}"))),
    ),
  },
  "a body that is not valid UTF-8 is 400": {
    "replaces what it cannot read": when(
      isCreate,
      asks((request) => withBody(request, request.body.toString("utf8"))),
    ),
  },
  "a body that is JSON but no object is 400": {
    "takes the first of an array": drafts((draft) =>
      Array.isArray(draft) && draft.length > 0 ? draft[0] : draft,
    ),
    "takes null for {}": drafts((draft) => draft ?? {}),
  },
  "an unknown field is 400 and named": {
    "drops it": drafts(({ colour: _, ...draft }) => draft),
    "does not name it": onStatus(
      400,
      rewrites((problem) => ({ ...problem, errors: [{ pointer: "", detail: "is wrong" }] })),
    ),
  },
  "a repeated field is 400 and named": { "takes the last": drafts((draft) => draft) },
  "an unknown query parameter is 400 and named, in every operation": {
    "drops it in a list": when(
      isList,
      queries((query) => query.delete("colour")),
    ),
    "drops it in a delete": when(
      isDelete,
      queries((query) => query.delete("colour")),
    ),
  },
  "a repeated query parameter is 400 and named": {
    "takes the first": queries((query) => {
      const limit = query.get("limit");
      if (limit !== null) query.set("limit", limit);
    }),
  },
  "a body where none is taken is 400": {
    "drops it": when(
      (request) => !isCreate(request),
      asks((request) => ({
        ...without("Content-Type")(without("Content-Length")(request)),
        body: Buffer.alloc(0),
      })),
    ),
  },
  "a body may come in chunks": {
    "wants a length": when(
      (request) => headerOf(request, "transfer-encoding") !== undefined,
      says(411),
    ),
  },
  "a Content-Length that is none, or two of them, is 400": {
    "takes the last": asks((request) =>
      request.headers.filter(([name]) => name === "Content-Length").length > 1
        ? withHeader(request, "Content-Length", String(request.body.length))
        : request,
    ),
  },
  "a request without Host is 400": {
    "does without": when(
      (request) => headerOf(request, "host") === undefined,
      asks((request) => withHeader(request, "Host", "localhost")),
    ),
  },
  "a request with two Hosts is 400": {
    "takes the first": asks((request) =>
      headerOf(request, "host") === undefined
        ? request
        : withHeader(request, "Host", headerOf(request, "host")),
    ),
  },
  "a Host that names no host is 400": {
    "does not look at it": when(
      (request) => headerOf(request, "host")?.includes("/") === true,
      asks((request) => withHeader(request, "Host", "localhost")),
    ),
  },
  "the path is checked before the method": {
    "answers 405": when(({ method }) => method === "PUT", says(405)),
  },
  "the method is checked before the token": {
    "answers 401": when((request) => request.method === "PUT" && hasNoToken(request), says(401)),
  },
  "the token is checked before type, query and body": {
    "answers 415": when((request) => isCreate(request) && hasNoToken(request), says(415)),
    "answers 400 to an id": when((request) => pathOf(request).endsWith("/x"), says(400)),
  },
  "the scope is checked before type, query and body": {
    "answers 415": when((request) => headerOf(request, "content-type") === "text/plain", says(415)),
  },
  "the type is checked before query and body": {
    "answers 400": when((request) => headerOf(request, "content-type") === "text/plain", says(400)),
  },
  "every answer carries an X-Request-Id": {
    "has none in a 409": onStatus(409, without("X-Request-Id")),
    "has none in a 204": onStatus(204, without("X-Request-Id")),
  },
  "the caller's X-Request-Id comes back": {
    "makes one of its own": asks(without("X-Request-Id")),
    "cuts it": answers((answer) =>
      withHeader(answer, "X-Request-Id", headerOf(answer, "x-request-id")?.slice(0, 64)),
    ),
  },
  "an X-Request-Id that is not well-formed is replaced": {
    "gives back anything": answers((answer, request) =>
      withHeader(answer, "X-Request-Id", headerOf(request, "x-request-id") ?? "new"),
    ),
  },
  "a new X-Request-Id is different each time": {
    "has only one": answers((answer) => withHeader(answer, "X-Request-Id", "the-one")),
  },
};
