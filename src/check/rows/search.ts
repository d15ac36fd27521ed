/** Order, search and tags: what they find, in which order, and how pages of them go on. */
import {
  as,
  atEnd,
  create,
  each,
  leaf,
  list,
  plant,
  plants,
  rowsOf,
  shown,
  tagged,
  toNext,
} from "../row.ts";

const named = (number: number, name: string, tag = "") => create(plant(number, { name, tag }));
const found = (...names: string[]) => names.map((name) => ({ name, tag: "" }));
const search = (words: string, json: unknown) =>
  list(`&q=${encodeURIComponent(words)}`, json, { Link: null });

const orderRows = rowsOf("order", {
  "order=desc lists by descending id, as numbers": [
    create(plant(4, { id: "{far}" })),
    ...plants(3),
    ["GET /plants?order=desc", { json: shown(4, 3, 2, 1), ...atEnd }],
    ["GET /plants?order=asc", { json: shown(1, 2, 3, 4) }],
  ],
  "after then goes on below an id, and may be the lowest and the highest": [
    ...plants(3),
    ["GET /plants?order=desc&after={3}", { json: shown(2, 1) }],
    ["GET /plants?order=desc&after=9223372036854775807", { json: shown(3, 2, 1) }],
    ["GET /plants?order=desc&after=-9223372036854775808", { json: [] }],
  ],
  "following Link in descending order visits every plant exactly once": [
    ...plants(5),
    ["GET /plants?order=desc&limit=2", { json: shown(5, 4), ...toNext }],
    ["GET {next}", { json: shown(3, 2), ...toNext }],
    ["GET {next}", { json: shown(1), ...atEnd }],
  ],
  "order goes with tag and include": [
    ...[1, 3].map((number) => create(plant(number, { tag: "a" }))),
    create(plant(2)),
    [
      "GET /plants?order=desc&tag=a&include=id&limit=1",
      { json: [{ id: "{3}", name: "{name} 3", tag: "a" }], ...toNext },
    ],
    ["GET {next}", { json: [{ id: "{1}", name: "{name} 1", tag: "a" }], ...atEnd }],
  ],
  "a list in descending order shows a new plant at once": [
    create({ name: "first" }),
    ["GET /plants?order=desc&limit=1", { json: found("first"), ...atEnd }],
    ["GET /plants?order=desc&limit=1", { json: found("first") }],
    create({ name: "second" }),
    ["GET /plants?order=desc&limit=1", { json: found("second"), ...toNext }],
    ["GET /plants?order=desc&limit=1", { json: found("second") }],
    create({ name: "third" }),
    ["GET /plants?order=desc&limit=1", { json: found("third") }],
  ],
  "another order, or one given twice, is 400": each(
    ["", "down", "DESC", "-id", "desc&order=desc"],
    ["GET /plants?order={each}", { errors: ["order"] }],
  ),
});

const searchRows = rowsOf("search", {
  "q finds plants by a part of their name or tag": [
    named(1, "Monstera deliciosa"),
    named(2, "Fern", "monster"),
    named(3, "Ivy"),
    search("onster", [...found("Monstera deliciosa"), { name: "Fern", tag: "monster" }]),
    search("monstera", found("Monstera deliciosa")),
    search("ferns", []),
  ],
  "every word must be found, each in the name or in the tag": [
    named(1, "Royal fern", "pond"),
    ...["fern royal", " pond\u3000FERN\t", "roy fer on"].map((words) =>
      search(words, [{ name: "Royal fern", tag: "pond" }]),
    ),
    search("royal ivy", []),
    search("fernpond", []),
  ],
  "neither case nor accents matter, in the plant or in the search": [
    named(1, "CRÈME Brûlée"),
    named(2, "\u0130stanbul"),
    named(3, "ΟΔΟΣ"),
    named(4, "\ufb01g"),
    search("creme BRULEE", found("CRÈME Brûlée")),
    search("bru\u0302lée", found("CRÈME Brûlée")),
    search("istan", found("\u0130stanbul")),
    search("οδοσ", found("ΟΔΟΣ")),
    search("fig", found("\ufb01g")),
  ],
  "a search may have any characters": [
    named(1, "100% [a].*"),
    named(2, "a_b"),
    named(3, `${leaf} leaf`),
    search("0%", found("100% [a].*")),
    search("[A].*", found("100% [a].*")),
    search("_", found("a_b")),
    search(leaf, found(`${leaf} leaf`)),
    search("%", found("100% [a].*")),
  ],
  "q goes with tag, order, limit, after and include, and Link keeps them all": [
    ...[1, 2, 4].map((number) => create(plant(number, { tag: "a&b" }))),
    create(plant(3)),
    [
      "GET /plants?q=check+PLANT&tag=a%26b&order=desc&include=id&limit=1&after={4}",
      { json: [{ id: "{2}", name: "{name} 2", tag: "a&b" }], ...toNext },
    ],
    ["GET {next}", { json: [{ id: "{1}", name: "{name} 1", tag: "a&b" }], ...atEnd }],
  ],
  "following Link finds every plant, with a limit of 0, too": [
    named(1, "fern a"),
    named(2, "ivy"),
    named(3, "fern b"),
    named(4, "ivy"),
    ["GET /plants?q=fern&limit=0", { json: [], ...toNext }],
    ["GET {next}", { json: found("fern a"), ...toNext }],
    ["GET {next}", { json: found("fern b"), ...atEnd }],
  ],
  "a search shows a change at once": [
    named(1, "fern a"),
    search("fern", found("fern a")),
    search("fern", found("fern a")),
    named(2, "fern b"),
    search("fern", found("fern a", "fern b")),
    ["DELETE /plants/{1}", 204],
    search("fern", found("fern b")),
  ],
  "a search shows no plant of another garden": [
    named(1, "fern"),
    [as("second", "GET /plants?q=fern"), { json: [] }],
  ],
  "q has 1 to 100 code points": [
    named(1, leaf.repeat(100)),
    search(leaf.repeat(100), found(leaf.repeat(100))),
    [`GET /plants?q=${encodeURIComponent(leaf.repeat(101))}`, { errors: ["q"] }],
  ],
  "words are what white space separates, before accents are dropped": [
    named(1, "e\u00b4f"),
    named(2, "café"),
    named(3, "e x f"),
    search("e\u00b4f", found("e\u00b4f")),
  ],
  "a q that is empty, only white space, with U+0000, invalid UTF-8 or given twice is 400": each(
    ["", "%20", "%E3%80%80%0A", "a%00", "%ff", "%ed%a0%80", "a&q=a"],
    ["GET /plants?q={each}", { errors: ["q"] }],
  ),
  "a q with a word of accents only is 400": each(
    ["%C2%B4", "%CC%81", "fern+%C2%A8"],
    ["GET /plants?q={each}", { errors: ["q"] }],
  ),
});

const count = (tag: string, plants: number) => ({ tag, plants });

const tagRows = rowsOf("tags", {
  "tags are counted in code point order, and plants without one under the empty tag": [
    ...["b", "", "a", leaf, "\uff21", "a", "B"].map((tag, index) => tagged(index + 1, tag)),
    [
      "GET /tags",
      {
        json: [
          count("", 1),
          count("B", 1),
          count("a", 2),
          count("b", 1),
          count("\uff21", 1),
          count(leaf, 1),
        ],
        ...atEnd,
      },
    ],
  ],
  "an empty garden has no tags": ["GET /tags", { json: [], ...atEnd }],
  "limit cuts the list, and following Link visits every tag exactly once": [
    ...["", "a&b", "a&b", "c"].map((tag, index) => tagged(index + 1, tag)),
    ["GET /tags?limit=0", { json: [], ...toNext }],
    ["GET {next}", { json: [count("", 1)], ...toNext }],
    ["GET {next}", { json: [count("a&b", 2)], ...toNext }],
    ["GET {next}", { json: [count("c", 1)], ...atEnd }],
    ["GET /tags?limit=3", { json: [count("", 1), count("a&b", 2), count("c", 1)], ...atEnd }],
  ],
  "after is a tag that need not exist, and may be empty": [
    ...["", "a", "aa", "b"].map((tag, index) => tagged(index + 1, tag)),
    ["GET /tags?after=", { json: [count("a", 1), count("aa", 1), count("b", 1)] }],
    ["GET /tags?after=a", { json: [count("aa", 1), count("b", 1)] }],
    ["GET /tags?after=ab&limit=1", { json: [count("b", 1)], ...atEnd }],
    ["GET /tags?after=c", { json: [] }],
  ],
  "the numbers show every change at once": [
    tagged(1, "a"),
    ["GET /tags", { json: [count("a", 1)] }],
    ["GET /tags", { json: [count("a", 1)] }],
    tagged(2, "a"),
    ["GET /tags", { json: [count("a", 2)] }],
    [{ request: "PUT /plants/{1}", body: { name: "{name}", tag: "b" } }, 200],
    ["GET /tags", { json: [count("a", 1), count("b", 1)] }],
    ["DELETE /plants/{2}", 204],
    ["GET /tags", { json: [count("b", 1)] }],
  ],
  "tags of another garden are not counted": [
    tagged(1, "a"),
    [as("second", "GET /tags"), { json: [] }],
  ],
  "a token that may only read is enough to count tags": [
    tagged(1, "a"),
    [as("read", "GET /tags"), { json: [count("a", 1)] }],
  ],
  "HEAD of the tags has the Link that GET has": [
    tagged(1, "a"),
    tagged(2, "b"),
    ["GET /tags?limit=1", toNext],
    ["HEAD /tags?limit=1", { same: ["Link"] }],
  ],
  "a wrong limit, an after that no tag can be, and other parameters are 400": [
    ["GET /tags?limit=-1", { errors: ["limit"] }],
    [`GET /tags?after=${"t".repeat(101)}`, { errors: ["after"] }],
    ["GET /tags?after=%00", { errors: ["after"] }],
    ["GET /tags?after=a&after=a", { errors: ["after"] }],
    ["GET /tags?include=id", { errors: ["include"] }],
  ],
});

export const rows = [...orderRows, ...searchRows, ...tagRows];
