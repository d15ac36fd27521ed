/** Flaws of a plant's fields, and of creates. */
import type { Serve } from "./broken-service.ts";
import {
  answers,
  digitsOf,
  draftOf,
  drafts,
  type Flaws,
  isCreate,
  isDelete,
  isList,
  type Loose,
  make,
  onStatus,
  parse,
  pathOf,
  rewrites,
  says,
  tokenOf,
  when,
  withDraft,
  withHeader,
  without,
  withStatus,
} from "./flaw.ts";

const isText = (value: Loose): value is string => typeof value === "string";

/** Changes a field, if this test holds for it. */
function mends(field: string, test: (value: Loose) => boolean, change: (value: Loose) => Loose) {
  return drafts((draft) =>
    draft && field in draft && test(draft[field])
      ? { ...draft, [field]: change(draft[field]) }
      : draft,
  );
}

/** Takes `null` for a field that is not there. */
function dropsNull(field: string): Serve {
  return drafts((draft) => {
    if (draft?.[field] !== null) return draft;
    const { [field]: _, ...rest } = draft;
    return rest;
  });
}

/** Refuses a draft that is fine. */
function refusesDraft(test: (draft: Loose) => boolean): Serve {
  return when((request) => isCreate(request) && test(draftOf(request) ?? {}), says(400));
}

const raw = (text: string) => parse(text);
const exactly = (id: Loose) => BigInt(digitsOf(id).split(/[.eE]/)[0] ?? 0);
const isNumber = (value: Loose) => /^-?\d/.test(digitsOf(value));

/** Assigns ids by its own rule. */
function assigns(next: (given: number) => bigint): Serve {
  let given = 0;
  return drafts((draft) =>
    draft && !("id" in draft) ? { ...draft, id: raw(String(next(given++))) } : draft,
  );
}

const takenBy = new Map<string, string>();
let lateUntil = 0;
let conflicts = 0;
let highest = 4_000_000_000n;

export const plantFlaws: Flaws = {
  "a name has 1 to 200 characters": {
    "takes 199": refusesDraft(({ name }) => isText(name) && name.length === 200),
    "takes no single one": refusesDraft(({ name }) => name === "n"),
    "cuts names at 150": mends("name", isText, (name) => name.slice(0, 150)),
  },
  "characters are Unicode code points": {
    "counts UTF-16 units": refusesDraft(({ name }) => isText(name) && name.length > 200),
    "counts bytes of a tag": refusesDraft(({ tag }) => isText(tag) && Buffer.byteLength(tag) > 100),
  },
  "a name of 201 code points is 400": {
    "cuts it": mends("name", isText, (name) => [...name].slice(0, 200).join("")),
  },
  "an empty name is 400": {
    "takes it": mends(
      "name",
      (name) => name === "",
      () => "unnamed",
    ),
  },
  "a name of white space is 400": {
    "takes it": mends(
      "name",
      (name) => isText(name) && name.trim() === "",
      () => "unnamed",
    ),
    "knows only ASCII": mends(
      "name",
      (name) => isText(name) && /^[^!-~ ]+$/.test(name),
      () => "x",
    ),
  },
  "a name must be there": { "gives one": drafts((draft) => ({ name: "unnamed", ...draft })) },
  "a name of null is 400": {
    'takes it for "null"': mends("name", (name) => name === null, String),
  },
  "a name that is no string is 400": {
    "takes a number": mends("name", isNumber, digitsOf),
    "takes a list": mends("name", Array.isArray, ([name]) => name),
  },
  'an absent tag is ""': {
    "shows null": onStatus(
      201,
      rewrites((plant) => ({ ...plant, tag: plant.tag || null })),
    ),
  },
  "a tag has 0 to 100 characters": {
    "takes 99": refusesDraft(({ tag }) => isText(tag) && tag.length === 100),
    "takes no empty one": refusesDraft(({ tag }) => tag === ""),
  },
  "a tag of 101 code points is 400": {
    "cuts it": mends("tag", isText, (tag) => [...tag].slice(0, 100).join("")),
  },
  "a tag of null is 400": { "takes it for absent": dropsNull("tag") },
  "a tag that is no string is 400": { "takes a number": mends("tag", isNumber, digitsOf) },
  "strings are not trimmed": {
    "trims names": mends("name", isText, (name) => name.trim() || name),
    "trims tags": mends("tag", isText, (tag) => tag.trim()),
  },
  "strings are not normalised": {
    "normalises names": mends("name", isText, (name) => name.normalize("NFC")),
    "normalises tags": mends("tag", isText, (tag) => tag.normalize("NFKC")),
  },
  "quotes, backslashes and line breaks are kept": {
    "escapes HTML": mends("name", isText, (name) => name.replaceAll("<", "&lt;")),
    "drops control characters": mends("tag", isText, (tag) => tag.replaceAll("\u0001", "")),
  },
  "U+0000 is 400": {
    "drops it": mends("name", isText, (name) => name.replaceAll("\0", "")),
    "drops it in a tag": mends("tag", isText, (tag) => tag.replaceAll("\0", "")),
  },
  "a lone surrogate is 400": {
    "replaces it": mends("tag", isText, (tag) => tag.toWellFormed()),
  },
  "an id of null is 400": { "takes it for absent": dropsNull("id") },
  "an id that is no number is 400": {
    "reads digits in text": mends("id", isText, raw),
    "takes true for 1": mends(
      "id",
      (id) => id === true,
      () => 1,
    ),
  },
  "an id that is no integer is 400": {
    "drops the fraction": mends("id", isNumber, (id) => raw(digitsOf(id).replace(/\..*/, ""))),
  },
  "an id beyond 64 bits is 400": {
    "cuts it to 64 bits": mends("id", isNumber, (id) =>
      raw(String(BigInt.asIntN(64, exactly(id) + (1n << 52n)) | (1n << 60n))),
    ),
  },
  "an id beyond 2^53 is kept exactly": {
    rounds: mends("id", isNumber, (id) => raw(String(BigInt(Number(digitsOf(id)))))),
  },
  "the highest id of 64 bits is kept": {
    "takes ids below it": refusesDraft(({ id }) => digitsOf(id) === "9223372036854775807"),
  },
  "the lowest id of 64 bits is kept": {
    "takes no negative ids": refusesDraft(({ id }) => digitsOf(id).startsWith("-")),
  },
  "an integer may be written as 1.0 or 1e3": {
    "takes digits only": refusesDraft(({ id }) => /[.e]/.test(digitsOf(id))),
  },
  "an absent id is assigned, from 1 to 2^53−1": {
    "assigns 64 bits": assigns((given) => 2n ** 60n + 2n ** 40n + BigInt(given)),
    "assigns negative ones": assigns((given) => -5_000_000_000n - BigInt(given)),
  },
  "an assigned id is higher than those before, also after a deletion": {
    "counts down": assigns((given) => 3_000_000_000n - BigInt(given)),
    "gives an id again": (request, forward, tokens) => {
      if (isDelete(request)) highest -= 1n;
      return assigns(() => ++highest)(request, forward, tokens);
    },
  },
  "gardens do not block each other's ids": {
    "has one space of ids": when(isCreate, async (request, forward) => {
      const id = digitsOf(draftOf(request)?.id);
      const owner = takenBy.get(id) ?? tokenOf(request);
      takenBy.set(id, owner);
      return owner === tokenOf(request) ? forward(request) : make(409);
    }),
  },
  "a create is 201": { "answers 200": onStatus(201, withStatus(200)) },
  "its body is name and tag, and nothing else": {
    "shows the id": when(
      isCreate,
      answers((answer, request) =>
        rewrites((plant) => ({ ...plant, id: draftOf(request)?.id }))(answer),
      ),
    ),
    "turns the fields round": onStatus(
      201,
      rewrites(({ name, tag }) => ({ tag, name })),
    ),
    "forgets the tag": onStatus(
      201,
      rewrites(({ name }) => ({ name })),
    ),
  },
  "its body is application/json": {
    "says text": onStatus(201, (answer) => withHeader(answer, "Content-Type", "text/json")),
  },
  "its Location is {base path}/plants/{id}": {
    "has none": onStatus(201, without("Location")),
    "has a whole address": onStatus(201, (answer) =>
      withHeader(answer, "Location", `http://localhost/plants/1`),
    ),
  },
  "a created plant is in the list at once": {
    "shows it later": async (request, forward) => {
      if (isCreate(request)) lateUntil = 2;
      return isList(request) && lateUntil-- > 0 ? make(200, "[]") : forward(request);
    },
  },
  "a taken id is 409": {
    "answers 200": onStatus(409, withStatus(200)),
    "answers 400": onStatus(409, withStatus(400)),
  },
  "a create that is 409 changes nothing": {
    "replaces the plant": when(isCreate, async (request, forward) => {
      const answer = await forward(request);
      if (answer.status !== 409) return answer;
      const target = `${pathOf(request)}/${digitsOf(draftOf(request).id)}`;
      const removal = without("Content-Length")(without("Content-Type")(request));
      await forward({ ...removal, method: "DELETE", target, body: Buffer.alloc(0) });
      await forward(request);
      return answer;
    }),
  },
  "of creates with one id at the same time one is 201, the others are 409": {
    "lets two in": onStatus(409, (answer) =>
      conflicts++ % 2 === 0 ? withStatus(201)(answer) : answer,
    ),
  },
  "a create that is 400 creates nothing": {
    "stores it first": when(isCreate, async (request, forward) => {
      const answer = await forward(request);
      if (answer.status === 400) {
        await forward(withDraft(request, ({ name, id }) => ({ name, id })));
      }
      return answer;
    }),
  },
};
