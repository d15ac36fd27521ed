/** Many requests on a connection, and connections that end too soon. */
import {
  answered,
  authorization,
  chunk,
  chunked,
  create,
  fern,
  get,
  type HostileCase,
  halfClose,
  head,
  host,
  json,
  leave,
  pause,
  post,
  smuggled,
} from "./hostile-case.ts";

const missing = head("GET /nothing HTTP/1.1", host);

const pipelineCases: readonly HostileCase[] = [
  ["two lists at once", get() + get(), "200 200 open"],
  ["ten lists at once", get().repeat(10), `${"200 ".repeat(10)}open`],
  ["a refused request between two lists", get() + missing + get(), "200 404 200 open"],
  ["a malformed request between two lists", `${get()}GET\r\n\r\n${smuggled}`, "200 400 closed"],
  [
    "a request with a bad length between two lists",
    get() + post("Content-Length: -1") + smuggled,
    "200 400 closed",
  ],
  [
    "a closing request between two lists",
    get() + get("Connection: close") + smuggled,
    "200 200 closed",
  ],
  ["a create behind a list", get() + create(fern), "200 201 open"],
  ["a list behind a create that waits for the disk", create(fern) + get(), "closed"],
  ["two creates at once", create(fern) + create(fern), "closed"],
  ["a refused create before a list", create("{}") + get(), "400 200 open"],
  [
    "one request after another",
    [get(), answered, create(fern), answered, get()],
    "200 201 200 open",
  ],
  [
    "a body that comes with the next request",
    [post("Content-Length: 15"), pause, fern + get()],
    "closed",
  ],
  ["a request in two packets, cut in the method", ["GE", pause, get().slice(2)], "200 open"],
  ["a request in two packets, cut in the line end", [get().slice(0, -1), pause, "\n"], "200 open"],
  [
    "a body of a refused request that looks like one",
    head("POST /plants HTTP/1.1", host, authorization, `Content-Length: ${smuggled.length}`) +
      smuggled,
    "415 open",
  ],
  [
    "a body of a request without a token that looks like one",
    head("POST /plants HTTP/1.1", host, json, `Content-Length: ${smuggled.length}`) + smuggled,
    "401 open",
  ],
  [
    "a body of a request for nothing that looks like one",
    head("POST /nothing HTTP/1.1", host, `Content-Length: ${smuggled.length}`) + smuggled,
    "404 open",
  ],
];

const endingCases: readonly HostileCase[] = [
  ["nothing, and the client closes its side", [halfClose], "closed"],
  ["half a head, and the client closes its side", ["GET /pla", halfClose], "closed"],
  ["a list, and the client closes its side", [get(), halfClose], "200 closed"],
  [
    "a list, and the client closes its side once it is answered",
    [get(), answered, halfClose],
    "200 closed",
  ],
  ["a create, and the client closes its side", [create(fern), halfClose], "closed"],
  [
    "half a body, and the client closes its side",
    [post("Content-Length: 15"), fern.slice(0, 5), halfClose],
    "closed",
  ],
  [
    "half a chunk, and the client closes its side",
    [post(chunked), `f\r\n${fern.slice(0, 5)}`, halfClose],
    "closed",
  ],
  [
    "chunks without a last one, and the client closes its side",
    [post(chunked), chunk(fern), halfClose],
    "closed",
  ],
  ["a list, and the client leaves", [get(), leave], "closed"],
  ["half a head, and the client leaves", ["GET /pla", leave], "closed"],
  ["a create, and the client leaves", [create(fern), leave], "closed"],
  ["half a body, and the client leaves", [post("Content-Length: 15"), "{", pause, leave], "closed"],
  ["half a chunk, and the client leaves", [post(chunked), "f\r\n{", pause, leave], "closed"],
  ["a body that does not come", post("Content-Length: 15"), "waiting"],
  ["a body that lacks one byte", post("Content-Length: 16") + fern, "waiting"],
  ["a body that has one byte too many", post("Content-Length: 14") + fern, "400 400 closed"],
  ["a chunk that does not come", post(chunked), "waiting"],
];

export const connectionCases = [...pipelineCases, ...endingCases];
