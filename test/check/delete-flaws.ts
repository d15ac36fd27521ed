/** Flaws of deletes. */
import type { WireAnswer } from "../../src/check/wire.ts";
import type { Serve, WireRequest } from "./broken-service.ts";
import {
  asCaller,
  asks,
  digitsOf,
  draftOf,
  type Flaws,
  isCreate,
  isDelete,
  make,
  onStatus,
  pathOf,
  rewrites,
  says,
  tokenOf,
  when,
  withHeader,
  withStatus,
} from "./flaw.ts";

const idOf = (request: WireRequest) => pathOf(request).split("/").at(-1) ?? "";
const withId = (request: WireRequest, id: string): WireRequest => ({
  ...request,
  target: request.target.replace(idOf(request), id),
});

/** Takes an id for another, in deletes, and says that the plant was there. */
function deletes(test: RegExp, change: (id: string) => string): Serve {
  return when(
    (request) => isDelete(request) && test.test(idOf(request)),
    asks((request) => withId(request, change(idOf(request)))),
  );
}

const created = new Set<string>();
const gone = new Set<string>();
const remembersGone: (serve: (request: WireRequest, answer: WireAnswer) => WireAnswer) => Serve =
  (change) => async (request, forward) => {
    const answer = await forward(request);
    const changed = change(request, answer);
    if (isDelete(request) && answer.status === 204) gone.add(idOf(request));
    return changed;
  };

export const deleteFlaws: Flaws = {
  "a delete is 204 without a body": {
    "answers 200": onStatus(204, withStatus(200)),
    "sends a body": onStatus(204, (answer) => ({ ...answer, surplus: Buffer.from("{}") })),
    "says a type": onStatus(204, (answer) => withHeader(answer, "Content-Type", "text/plain")),
  },
  "a deleted plant is gone from the list at once, and no other is": {
    "only says so": when(isDelete, says(204)),
    "takes its neighbour too": when(isDelete, async (request, forward) => {
      await forward(withId(request, String(BigInt(idOf(request)) + 1n)));
      return forward(request);
    }),
  },
  "a second delete is 404": {
    "is 204 again": when(isDelete, onStatus(404, withStatus(204))),
    "is 410": when(isDelete, onStatus(404, withStatus(410))),
  },
  "of deletes of one plant at the same time one is 204": {
    "are all 204": when(isDelete, onStatus(404, withStatus(204))),
  },
  "an id that no plant has is 404": {
    "is 204": when(isDelete, onStatus(404, withStatus(204))),
  },
  "404 is the same for a plant that is gone and one that never was": {
    "tells that it is gone": remembersGone((request, answer) =>
      isDelete(request) && answer.status === 404 && gone.has(idOf(request))
        ? rewrites((problem) => ({ ...problem, detail: "It was deleted." }))(answer)
        : answer,
    ),
  },
  "404 is the same for a plant of another garden": {
    "answers 403": async (request, forward, tokens) => {
      const answer = await forward(request);
      if (isCreate(request)) created.add(digitsOf(draftOf(request)?.id));
      const isOther = isDelete(request) && tokenOf(request) === tokens.second;
      return isOther && created.has(idOf(request)) ? make(403) : answer;
    },
  },
  "a plant of another garden is not deleted": {
    "is deleted": async (request, forward, tokens) => {
      const answer = await forward(request);
      if (isDelete(request) && answer.status === 404) {
        await forward(asCaller(request, tokens.first));
      }
      return answer;
    },
  },
  "a delete of an id that is no integer is 400": {
    "is 404": when((request) => isDelete(request) && /\D/.test(idOf(request)), says(404)),
    "reads what it can": deletes(/^\d+x$/, (id) => id.slice(0, -1)),
  },
  "a delete of an id not in its shortest form is 400": {
    "reads zeros": deletes(/^0\d/, (id) => id.slice(1)),
    "reads a plus": deletes(/^\+/, (id) => id.slice(1)),
    "reads .0": deletes(/\.0$/, (id) => id.slice(0, -2)),
  },
  "a delete of an id beyond 64 bits is 400": {
    "cuts it": deletes(/^-?\d{20}/, (id) => String(BigInt.asIntN(64, BigInt(id)))),
  },
  "the id of a deleted plant is free again": {
    "stays taken": remembersGone((request, answer) =>
      isCreate(request) && gone.has(digitsOf(draftOf(request)?.id)) ? make(409) : answer,
    ),
  },
};
