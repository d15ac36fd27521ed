/** Flaws of idempotency keys. */
import type { WireAnswer } from "../../src/check/wire.ts";
import { headerOf, type Serve, type WireRequest } from "./broken-service.ts";
import {
  answers,
  asks,
  draftOf,
  type Flaws,
  isCreate,
  make,
  onStatus,
  rewrites,
  says,
  when,
  withHeader,
  without,
  withStatus,
} from "./flaw.ts";

const keyOf = (request: WireRequest) => headerOf(request, "idempotency-key");
const isKeyed = (request: WireRequest) => isCreate(request) && keyOf(request) !== undefined;
const isReplay = (answer: WireAnswer) => headerOf(answer, "idempotency-replayed") !== undefined;

function keys(change: (key: string) => string): Serve {
  return when(
    isKeyed,
    asks((request) => withHeader(request, "Idempotency-Key", change(keyOf(request) ?? ""))),
  );
}

/** Keeps something of the first request with a key. */
function remembers<Kept>(
  keep: (request: WireRequest, answer: WireAnswer) => Kept,
  again: (kept: Kept, answer: WireAnswer, request: WireRequest) => WireAnswer,
): Serve {
  const kept = new Map<string, Kept>();
  return when(isKeyed, async (request, forward) => {
    const key = keyOf(request) ?? "";
    const answer = await forward(request);
    const first = kept.get(key);
    if (first !== undefined) return again(first, answer, request);
    kept.set(key, keep(request, answer));
    return answer;
  });
}

const withoutKey = asks(without("Idempotency-Key"));
const underWay = new Set<string>();

export const keyFlaws: Flaws = {
  "the same key and request give the same status, body and Location": {
    "creates a second plant": withoutKey,
    "answers 200 to a replay": answers((answer) =>
      isReplay(answer) ? withStatus(200)(answer) : answer,
    ),
    "has no Location in a replay": answers((answer) =>
      isReplay(answer) ? without("Location")(answer) : answer,
    ),
    "shows less in a replay": answers((answer) =>
      isReplay(answer) ? rewrites(({ name }) => ({ name }))(answer) : answer,
    ),
  },
  "a replay says Idempotency-Replayed: true, a first answer does not": {
    "does not say so": answers(without("Idempotency-Replayed")),
    "says so always": onStatus(201, (answer) => withHeader(answer, "Idempotency-Replayed", "true")),
  },
  "retries at the same time create one plant": {
    "looks before it writes": when(isKeyed, async (request, forward) => {
      const key = keyOf(request) ?? "";
      const isLate = underWay.has(key);
      underWay.add(key);
      setTimeout(() => underWay.delete(key), 200);
      return forward(isLate ? without("Idempotency-Key")(request) : request);
    }),
  },
  "a replay does not bring a deleted plant back": {
    "creates it again": when(isKeyed, async (request, forward) => {
      const answer = await forward(request);
      if (isReplay(answer)) await forward(without("Idempotency-Key")(request));
      return answer;
    }),
    "answers 404": answers((answer) => (isReplay(answer) ? make(404) : answer)),
  },
  "the same key with another request is 422": {
    "replays all the same": remembers(
      (_request, answer) => answer,
      (first) => first,
    ),
    "looks at the name only": remembers(
      (request, answer) => ({ answer, name: draftOf(request)?.name }),
      (first, answer, request) => (draftOf(request)?.name === first.name ? first.answer : answer),
    ),
    "answers 409": onStatus(422, withStatus(409)),
  },
  "a request that is 422 creates nothing": {
    "stores it": when(isKeyed, async (request, forward) => {
      const answer = await forward(request);
      if (answer.status === 422) await forward(without("Idempotency-Key")(request));
      return answer;
    }),
  },
  "a request in another spelling of JSON is the same": {
    "compares bytes": remembers(
      (request) => request.body.toString(),
      (first, answer, request) => (first === request.body.toString() ? answer : make(422)),
    ),
  },
  "a key is the same bare and in double quotes": {
    "takes quotes for a part of it": keys((key) => key.replaceAll('"', "'")),
  },
  "a key has 1 to 255 visible ASCII characters": {
    "takes 64": when((request) => (keyOf(request)?.length ?? 0) > 64, says(400)),
    "takes letters and digits": when((request) => /[^\w-]/.test(keyOf(request) ?? ""), says(400)),
  },
  "another key is 400 and named": {
    "cuts a long one": keys((key) => key.slice(0, 255)),
    "takes an empty one for none": when(
      (request) => keyOf(request) === "",
      asks(without("Idempotency-Key")),
    ),
    "takes spaces": keys((key) => key.replaceAll(" ", "-")),
    "does not name the header": onStatus(
      400,
      rewrites((problem) => ({ ...problem, errors: [] })),
    ),
  },
  "a request that was refused is not remembered": {
    "is remembered": remembers(
      (_request, answer) => answer,
      (first, answer) => (first.status === 400 ? first : answer),
    ),
  },
  "gardens do not share keys": {
    "share them": remembers(
      (_request, answer) => answer,
      (first) => withHeader(first, "Idempotency-Replayed", "true"),
    ),
  },
};
