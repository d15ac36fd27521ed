/** Flaws of lists. */
import { headerOf, type Serve, type WireRequest } from "./broken-service.ts";
import {
  answers,
  asCaller,
  digitsOf,
  type Flaws,
  isDelete,
  isList,
  type Loose,
  make,
  parse,
  queries,
  rewrites,
  says,
  when,
  withHeader,
  without,
} from "./flaw.ts";

/** Changes the array that a list is. */
function lists(change: (items: Loose[]) => Loose[], test: (query: URLSearchParams) => boolean) {
  return when(
    (request) => isList(request) && test(queryOf(request)),
    answers((answer) => (answer.status === 200 ? rewrites(change)(answer) : answer)),
  );
}

function queryOf({ target }: WireRequest): URLSearchParams {
  return new URLSearchParams(target.split("?")[1] ?? "");
}

const always = () => true;
/** Not those by which the check looks for free ids and for what it left. */
const isPlain = (query: URLSearchParams) => !query.has("fields");

/** Puts something else in the place of a parameter, if it is there. */
function swaps(name: string, change: (text: string) => string | undefined): Serve {
  return queries((query) => {
    const text = query.get(name);
    if (text === null) return;
    const swapped = change(text);
    if (swapped === undefined) query.delete(name);
    else query.set(name, swapped);
  });
}

/** Takes a value for another, in lists. */
function takes(name: string, values: readonly string[], other?: string): Serve {
  return when(
    isList,
    swaps(name, (text) => (values.includes(text) ? other : text)),
  );
}

function links(change: (link: string) => string | undefined) {
  return answers((answer) => {
    const link = headerOf(answer, "link");
    return link === undefined ? answer : withHeader(answer, "Link", change(link));
  });
}

let deletions = 0;

export const listFlaws: Flaws = {
  "a list is a JSON array of name and tag, and nothing else": {
    "wraps the array": lists((items) => ({ items }) as Loose, isPlain),
    "shows more": lists((items) => items.map((item) => ({ ...item, added: 1 })), isPlain),
    "turns the fields round": lists(
      (items) => items.map(({ name, tag }) => ({ tag, name })),
      isPlain,
    ),
    "says text": when(
      isList,
      answers((answer) => withHeader(answer, "Content-Type", "text/plain")),
    ),
  },
  "a list of no plants is an empty array": {
    "says null": when(
      (request) => isList(request) && isPlain(queryOf(request)),
      answers((answer) => (answer.body.length === 2 ? make(200, "null") : answer)),
    ),
    "answers 404": when(
      (request) => isList(request) && isPlain(queryOf(request)),
      answers((answer) => (answer.body.length === 2 ? make(404) : answer)),
    ),
  },
  "plants are ordered by ascending id": {
    "turns them round": lists((items) => items.toReversed(), isPlain),
    "orders by creation": lists((items) => [...items.slice(1), ...items.slice(0, 1)], isPlain),
  },
  "ids are ordered as numbers, not as text": {
    "orders as text": when(isList, async (request, forward) => {
      const query = queryOf(request);
      if (query.has("fields")) return forward(request);
      const separator = request.target.includes("?") ? "&" : "?";
      const target = `${request.target}${separator}fields=id,name,tag`;
      const items = parse((await forward({ ...request, target })).body.toString()) as Loose[];
      const byText = items.toSorted((a, b) => (digitsOf(a.id) < digitsOf(b.id) ? -1 : 1));
      return make(200, JSON.stringify(byText.map(({ name, tag }) => ({ name, tag }))));
    }),
  },
  "limit cuts the list": {
    "gives one too many": when(
      isList,
      swaps("limit", (limit) => String(Number(limit) + 1)),
    ),
    "does not cut": takes("limit", ["1", "2"]),
  },
  "limit may be more than there are": {
    "takes 1000 at most": when(
      (request) => Number(queryOf(request).get("limit")) > 1_000,
      says(400),
    ),
  },
  "limit may be 0": {
    "takes 0 for none": takes("limit", ["0"]),
    "refuses 0": when((request) => queryOf(request).get("limit") === "0", says(400)),
  },
  "from a limit of 0 the Link leads to every plant": {
    "leads to itself": links((link) =>
      link.includes("limit=1&") ? link.replace("limit=1", "limit=0") : link,
    ),
  },
  "a limit that is no integer from 0 to 2147483647 is 400": {
    "takes -1 for none": takes("limit", ["-1"]),
    "takes an empty one for none": takes("limit", [""]),
    "takes 2147483648": takes("limit", ["2147483648"], "2147483647"),
    "cuts a fraction": takes("limit", ["1.5"], "1"),
  },
  "a limit not in its shortest form is 400": {
    "reads 007": takes("limit", ["007"], "7"),
    "reads +1": takes("limit", ["+1"], "1"),
  },
  "after starts the list behind an id": {
    "starts at it": when(
      isList,
      swaps("after", (id) => (/^\d+$/.test(id) ? String(BigInt(id) - 1n) : id)),
    ),
  },
  "after may be an id that no plant has": {
    "refuses it": when(
      (request) => isList(request) && isPlain(queryOf(request)),
      answers((answer) => (answer.body.length > 2 ? make(404) : answer)),
    ),
  },
  "after is exact beyond 2^53": {
    rounds: when(
      isList,
      swaps("after", (id) => (/^\d+$/.test(id) ? String(BigInt(Number(id))) : id)),
    ),
  },
  "after may be the lowest and the highest id of 64 bits": {
    "takes no negative ones": when(
      (request) => queryOf(request).get("after")?.startsWith("-") === true,
      says(400),
    ),
  },
  "an after that is no id is 400": {
    "takes an empty one for none": takes("after", [""]),
    "takes text for none": takes("after", ["x"]),
    "takes what is beyond 64 bits": takes("after", ["9223372036854775808"], "9223372036854775807"),
  },
  "an after not in its shortest form is 400": {
    "reads 007": takes("after", ["007"], "7"),
    "reads -0": takes("after", ["-0"], "0"),
  },
  'Link with rel="next" is there when limit cut the list': {
    "has none": when(
      (request) => isList(request) && queryOf(request).get("limit") === "2",
      answers(without("Link")),
    ),
    "has another rel": links((link) => link.replace("next", "more")),
    "leads elsewhere": links((link) => link.replace("/plants", "/v2/plants")),
  },
  "Link is absent when the list is complete": {
    "has one at the end": when(
      isList,
      answers((answer) =>
        headerOf(answer, "link")
          ? answer
          : withHeader(answer, "Link", '</plants?limit=1&after=9>; rel="next"'),
      ),
    ),
    "has one where limit is just enough": when(
      (request) => isList(request) && queryOf(request).get("limit") === "2",
      answers((answer) => withHeader(answer, "Link", '</plants?limit=2&after=9>; rel="next"')),
    ),
  },
  "following Link visits every plant exactly once": {
    "misses one": links((link) =>
      link.replace(/after=(\d+)/, (_, id) => `after=${BigInt(id) + 2n}`),
    ),
    "repeats one": links((link) =>
      link.replace(/after=(\d+)/, (_, id) => `after=${BigInt(id) - 1n}`),
    ),
  },
  "following Link misses nothing when plants are deleted meanwhile": {
    "counts instead": async (request, forward) => {
      if (isDelete(request)) deletions++;
      const answer = await forward(request);
      const isPage = isList(request) && isPlain(queryOf(request)) && deletions > 0;
      return isPage ? rewrites(() => [])(answer) : answer;
    },
  },
  "Link keeps fields": {
    "forgets them": links((link) => link.replace(/&fields=[\w,]+/, "")),
  },
  "HEAD has the Link that GET has": {
    "has none": when(({ method }) => method === "HEAD", answers(without("Link"))),
  },
  "fields chooses among id, name and tag": {
    "shows the id always": lists(
      (items) => items.map((item) => ({ id: 1, ...item })),
      (query) => query.get("fields") === "name",
    ),
    "shows no tag": lists(
      (items) => items.map(({ tag: _, ...item }) => item),
      (query) => query.get("fields")?.includes("tag") === true,
    ),
  },
  "an id in a list is a JSON number with all its digits": {
    "is text": lists((items) => items.map(({ id }) => ({ id: digitsOf(id) })), always),
    "is rounded": lists((items) => items.map(({ id }) => ({ id: Number(digitsOf(id)) })), always),
  },
  "fields that are none are 400": {
    "drops what it does not know": when(
      isList,
      swaps("fields", (fields) => fields.replace(/,?colour/, "") || "name"),
    ),
    "takes a repeated one": takes("fields", ["id,id"], "id"),
    "takes an empty one for none": takes("fields", [""]),
  },
  "a list shows no plant of another garden": {
    "shows the first garden to all": (request, forward, tokens) =>
      forward(
        isList(request) && isPlain(queryOf(request)) ? asCaller(request, tokens.first) : request,
      ),
  },
};
