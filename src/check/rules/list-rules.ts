/** List: order, limit, after, fields, and the way on to the next page. */
import type { Answer } from "../answer.ts";
import {
  expectFaults,
  expectHeader,
  expectJson,
  expectStatus,
  expectThat,
} from "../expectation.ts";
import { Violation } from "../outcome.ts";
import type { Probe } from "../probe.ts";
import { rulesOf } from "../rule.ts";

interface Row {
  readonly id: bigint;
  readonly name: string;
  readonly tag: string;
}

/** Plants with gaps between their ids, by ascending id, created the other way round. */
async function plantRow(probe: Probe, count: number): Promise<Row[]> {
  const row: Row[] = [];
  for (let index = 0; index < count; index++) {
    probe.freshId();
    row.push(probe.draft(`row ${index}`));
  }
  for (const draft of row.toReversed()) expectStatus(await probe.garden.create(draft), 201);
  return row;
}

/** The id before the first of a row. */
function before(row: readonly Row[]): bigint {
  return (row[0]?.id ?? 0n) - 1n;
}

function shown(row: readonly Row[]): { name: string; tag: string }[] {
  return row.map(({ name, tag }) => ({ name, tag }));
}

/** Where `rel="next"` leads, as a request; absent if it leads nowhere. */
function nextOf(answer: Answer, probe: Probe): string | undefined {
  const link = answer.header("Link");
  if (link === undefined) return undefined;
  const target = /^<([^>]*)>\s*;\s*rel="?next"?$/.exec(link)?.[1];
  if (target === undefined) throw new Violation(`Link must be <…>; rel="next"`, answer);
  const url = new URL(target, `http://${probe.line.authority}${probe.line.basePath}/plants`);
  const path = `${probe.line.basePath}/plants`;
  expectThat(url.pathname === path, `Link must lead to ${path}`, answer);
  return `GET /plants${url.search}`;
}

async function followAll(probe: Probe, first: string): Promise<unknown[]> {
  const items: unknown[] = [];
  let request: string | undefined = first;
  for (let pages = 0; request !== undefined; pages++) {
    const answer = await probe.garden.ask(request);
    expectStatus(answer, 200);
    items.push(...(Array.isArray(answer.json) ? answer.json : []));
    request = nextOf(answer, probe);
    expectThat(pages < 20, "Link leads on and on", answer);
  }
  return items;
}

async function refuses(probe: Probe, parameter: string, ...values: string[]): Promise<void> {
  for (const value of values) {
    const rest = parameter === "limit" ? "" : "&limit=1";
    const answer = await probe.garden.ask(`GET /plants?${parameter}=${value}${rest}`);
    expectFaults(answer, parameter);
  }
}

export const listRules = rulesOf("list", {
  "a list is a JSON array of name and tag, and nothing else": async (probe) => {
    const row = await plantRow(probe, 2);
    const answer = await probe.garden.listBehind(before(row));
    expectStatus(answer, 200);
    expectHeader(answer, "Content-Type", /^application\/json(?:; ?charset=utf-8)?$/i);
    expectJson(answer, shown(row));
  },
  "a list of no plants is an empty array": async (probe) => {
    expectJson(await probe.garden.listBehind(probe.freshId()), []);
  },
  "plants are ordered by ascending id": async (probe) => {
    const row = await plantRow(probe, 4);
    expectJson(await probe.garden.listBehind(before(row)), shown(row));
  },
  "ids are ordered as numbers, not as text": async (probe) => {
    const short = probe.draft("short");
    const long = { ...probe.draft("long"), id: short.id > 10n ** 18n ? short.id + 1n : 10n ** 18n };
    for (const draft of [long, short]) await probe.garden.create(draft);
    expectJson(await probe.garden.listBehind(short.id - 1n), shown([short, long]));
  },
  "limit cuts the list": async (probe) => {
    const row = await plantRow(probe, 3);
    for (const limit of [1, 2]) {
      const answer = await probe.garden.listBehind(before(row), `&limit=${limit}`);
      expectJson(answer, shown(row.slice(0, limit)));
    }
  },
  "limit may be more than there are": async (probe) => {
    const row = await plantRow(probe, 2);
    for (const limit of [3, 2_147_483_647]) {
      expectJson(await probe.garden.listBehind(before(row), `&limit=${limit}`), shown(row));
    }
  },
  "limit may be 0": async (probe) => {
    const row = await plantRow(probe, 1);
    const answer = await probe.garden.listBehind(before(row), "&limit=0");
    expectStatus(answer, 200);
    expectJson(answer, []);
    expectThat(answer.header("Link") !== undefined, "Link must lead on, and is absent", answer);
  },
  "from a limit of 0 the Link leads to every plant": async (probe) => {
    const row = await plantRow(probe, 2);
    const items = await followAll(probe, `GET /plants?after=${before(row)}&limit=0`);
    expectThat(items.length === 2, `it led to ${items.length} plants instead of 2`);
  },
  "a limit that is no integer from 0 to 2147483647 is 400": (probe) =>
    refuses(probe, "limit", "-1", "1.5", "", "ten", "2147483648", "1e2", "0x1", "%201"),
  "a limit not in its shortest form is 400": (probe) => refuses(probe, "limit", "007", "%2B1"),
  "after starts the list behind an id": async (probe) => {
    const row = await plantRow(probe, 3);
    const [first] = row;
    expectJson(await probe.garden.listBehind(first?.id ?? 0n), shown(row.slice(1)));
  },
  "after may be an id that no plant has": async (probe) => {
    const row = await plantRow(probe, 2);
    expectJson(await probe.garden.listBehind((row[0]?.id ?? 0n) + 1n), shown(row.slice(1)));
  },
  "after is exact beyond 2^53": async (probe) => {
    const draft = { ...probe.draft("exact"), id: 2n ** 62n + probe.freshId() };
    await probe.garden.create(draft);
    expectJson(await probe.garden.listBehind(draft.id - 1n), shown([draft]));
    expectJson(await probe.garden.listBehind(draft.id), []);
  },
  "after may be the lowest and the highest id of 64 bits": async ({ garden }) => {
    expectStatus(await garden.listBehind(-(2n ** 63n), "&limit=1"), 200);
    expectJson(await garden.listBehind(2n ** 63n - 1n, "&limit=1"), []);
  },
  "an after that is no id is 400": (probe) =>
    refuses(probe, "after", "", "x", "1.5", "9223372036854775808", "-9223372036854775809"),
  "an after not in its shortest form is 400": (probe) =>
    refuses(probe, "after", "007", "%2B7", "-0"),
  'Link with rel="next" is there when limit cut the list': async (probe) => {
    const row = await plantRow(probe, 3);
    const answer = await probe.garden.listBehind(before(row), "&limit=2");
    expectThat(nextOf(answer, probe) !== undefined, "Link must be there, and is absent", answer);
  },
  "Link is absent when the list is complete": async (probe) => {
    const row = await plantRow(probe, 2);
    for (const query of ["", "&limit=3", "&limit=2"]) {
      expectHeader(await probe.garden.listBehind(before(row), query), "Link", undefined);
    }
    const empty = await probe.garden.listBehind(row[1]?.id ?? 0n, "&limit=0");
    expectHeader(empty, "Link", undefined);
  },
  "following Link visits every plant exactly once": async (probe) => {
    const row = await plantRow(probe, 5);
    for (const limit of [1, 2, 5]) {
      const items = await followAll(probe, `GET /plants?after=${before(row)}&limit=${limit}`);
      const names = items.map((item) => (item as Row).name).join(", ");
      const expected = row.map(({ name }) => name).join(", ");
      expectThat(names === expected, `pages of ${limit} lead to ${names}`);
    }
  },
  "following Link misses nothing when plants are deleted meanwhile": async (probe) => {
    const row = await plantRow(probe, 3);
    const first = await probe.garden.listBehind(before(row), "&limit=1");
    await probe.garden.delete(row[0]?.id ?? 0n);
    const second = await probe.garden.ask(nextOf(first, probe) ?? "GET /plants?limit=1");
    expectJson(second, shown(row.slice(1, 2)));
  },
  "Link keeps fields": async (probe) => {
    const row = await plantRow(probe, 2);
    const items = await followAll(probe, `GET /plants?after=${before(row)}&limit=1&fields=id`);
    const keys = items.map((item) => Object.keys(item as object).join()).join(" ");
    expectThat(keys === "id id", `the items have ${keys}`);
  },
  "HEAD has the Link that GET has": async (probe) => {
    const row = await plantRow(probe, 2);
    const target = `/plants?after=${before(row)}&limit=1`;
    const link = (await probe.garden.ask(`GET ${target}`)).header("Link");
    expectHeader(await probe.garden.ask(`HEAD ${target}`), "Link", link);
  },
  "fields chooses among id, name and tag": async (probe) => {
    const [plant] = await plantRow(probe, 1);
    const { id = 0n, name, tag } = plant ?? {};
    const ask = (fields: string) => probe.garden.listBehind(id - 1n, `&fields=${fields}`);
    expectJson(await ask("id,name,tag"), [{ id, name, tag }]);
    expectJson(await ask("id"), [{ id }]);
    expectJson(await ask("name"), [{ name }]);
    expectJson(await ask("name,tag"), [{ name, tag }]);
  },
  "an id in a list is a JSON number with all its digits": async (probe) => {
    const draft = { ...probe.draft("digits"), id: 2n ** 61n + probe.freshId() };
    await probe.garden.create(draft);
    const answer = await probe.garden.listBehind(draft.id - 1n, "&fields=id");
    const digits = /"id"\s*:\s*(\d+)\s*}/.exec(answer.text)?.[1];
    expectThat(digits === String(draft.id), `the id must be written as ${draft.id}`, answer);
  },
  "fields that are none are 400": (probe) =>
    refuses(probe, "fields", "", "colour", "id,", "id,id", "id,colour", "ID"),
  "a list shows no plant of another garden": async (probe) => {
    const { second, garden } = probe;
    const draft = probe.draft("not for others");
    expectStatus(await garden.create(draft), 201);
    expectJson(await second.listBehind(draft.id - 1n), []);
  },
});
