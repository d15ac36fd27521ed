/** Plant: what a name, a tag and an id may be, and that they are kept as sent. */
import type { Answer } from "../answer.ts";
import {
  expectFaults,
  expectHeader,
  expectJson,
  expectStatus,
  expectThat,
} from "../expectation.ts";
import { Skipped } from "../outcome.ts";
import type { Probe } from "../probe.ts";
import { rulesOf } from "../rule.ts";
import { nameMark } from "../tended-garden.ts";

const leaf = "\u{1f33f}";
const idMin = -(2n ** 63n);
const idMax = 2n ** 63n - 1n;

/** Stored, and found in the list as it was sent. */
async function keeps(probe: Probe, ...drafts: { name?: string; tag?: string }[]): Promise<void> {
  for (const draft of drafts) {
    const { id, name: usualName } = probe.draft("kept");
    const { name = usualName, tag = "" } = draft;
    expectStatus(await probe.garden.create({ name, tag, id }), 201);
    const listed = await probe.garden.listBehind(id - 1n, "&limit=1&fields=id,name,tag");
    expectJson(listed, [{ id, name, tag }]);
  }
}

/** Members in place of those of a good plant. */
async function refuses(probe: Probe, place: string, ...members: object[]): Promise<void> {
  for (const member of members) {
    expectFaults(await probe.garden.create({ ...probe.draft("refused"), ...member }), place);
  }
}

/** JSON text that JavaScript cannot write; `$id` stands for a fresh id. */
async function refusesText(probe: Probe, place: string, ...members: string[]): Promise<void> {
  for (const member of members) {
    const text = `{"name":"${nameMark}",${member.replace("$id", String(probe.freshId()))}}`;
    expectFaults(await probe.garden.create(text), place);
  }
}

async function keepsId(probe: Probe, id: bigint, written = String(id)): Promise<void> {
  const answer = await probe.garden.create(`{"name":"${nameMark} exact","id":${written}}`);
  expectStatus(answer, 201);
  expectHeader(answer, "Location", `${probe.line.basePath}/plants/${id}`);
  const behind = id === idMin ? "" : `&after=${id - 1n}`;
  const listed = await probe.garden.ask(`GET /plants?limit=1&fields=id${behind}`);
  expectJson(listed, [{ id }]);
  expectStatus(await probe.garden.delete(id), 204);
}

async function assign(probe: Probe): Promise<{ id: bigint; answer: Answer }> {
  const answer = await probe.garden.create({ name: `${nameMark} assigned` });
  expectStatus(answer, 201);
  const digits = /\/plants\/(-?\d+)$/.exec(answer.header("Location") ?? "")?.[1];
  expectThat(digits !== undefined, "Location must end in the id", answer);
  return { id: BigInt(digits ?? 0), answer };
}

export const plantRules = rulesOf("plant", {
  "a name has 1 to 200 characters": (probe) =>
    keeps(probe, { name: "n" }, { name: "n".repeat(200) }),
  "characters are Unicode code points": (probe) =>
    keeps(probe, { name: leaf.repeat(200) }, { tag: leaf.repeat(100) }),
  "a name of 201 code points is 400": (probe) =>
    refuses(probe, "/name", { name: "n".repeat(201) }, { name: leaf.repeat(201) }),
  "an empty name is 400": (probe) => refuses(probe, "/name", { name: "" }),
  "a name of white space is 400": (probe) =>
    refuses(probe, "/name", { name: " " }, { name: " \t\r\n" }, { name: "\u00a0\u3000" }),
  "a name must be there": async (probe) => {
    expectFaults(await probe.garden.create({ tag: "x", id: probe.freshId() }), "/name");
  },
  "a name of null is 400": (probe) => refuses(probe, "/name", { name: null }),
  "a name that is no string is 400": (probe) =>
    refuses(probe, "/name", { name: 7 }, { name: true }, { name: ["Fern"] }, { name: {} }),
  'an absent tag is ""': async (probe) => {
    const { name, id } = probe.draft("no tag");
    expectJson(await probe.garden.create({ name, id }), { name, tag: "" });
  },
  "a tag has 0 to 100 characters": (probe) => keeps(probe, { tag: "" }, { tag: "t".repeat(100) }),
  "a tag of 101 code points is 400": (probe) =>
    refuses(probe, "/tag", { tag: "t".repeat(101) }, { tag: leaf.repeat(101) }),
  "a tag of null is 400": (probe) => refuses(probe, "/tag", { tag: null }),
  "a tag that is no string is 400": (probe) =>
    refuses(probe, "/tag", { tag: 7 }, { tag: false }, { tag: [] }),
  "strings are not trimmed": (probe) =>
    keeps(probe, { name: ` ${nameMark} \n`, tag: " a tag\t" }, { tag: " " }),
  "strings are not normalised": (probe) =>
    keeps(probe, { name: "e\u0301 \u00e9", tag: "\ufb01 \u212b" }),
  "quotes, backslashes and line breaks are kept": (probe) =>
    keeps(probe, { name: 'a "quoted"\\ name\r\n</script>', tag: "\u2028\ud83c\udf3f\u0001" }),
  "U+0000 is 400": async (probe) => {
    await refuses(probe, "/name", { name: "a\0b" });
    await refuses(probe, "/tag", { tag: "\0" });
  },
  "a lone surrogate is 400": async (probe) => {
    await refusesText(probe, "/tag", '"id":$id,"tag":"\\ud83c"', '"id":$id,"tag":"\\udf3f x"');
    const text = `{"name":"\\ud83c","id":${probe.freshId()}}`;
    expectFaults(await probe.garden.create(text), "/name");
  },
  "an id of null is 400": (probe) => refuses(probe, "/id", { id: null }),
  "an id that is no number is 400": (probe) =>
    refuses(probe, "/id", { id: String(probe.freshId()) }, { id: true }, { id: [] }),
  "an id that is no integer is 400": (probe) =>
    refusesText(probe, "/id", '"id":$id.5', '"id":1e-1'),
  "an id beyond 64 bits is 400": (probe) =>
    refusesText(
      probe,
      "/id",
      `"id":${idMax + 1n}`,
      `"id":${idMin - 1n}`,
      '"id":1e400',
      '"id":184467440737095516160',
    ),
  "an id beyond 2^53 is kept exactly": async (probe) => {
    const beyond = probe.freshRoundId() + 2n ** 53n + 1n;
    await keepsId(probe, beyond);
    await keepsId(probe, 10n ** 18n + beyond);
  },
  "the highest id of 64 bits is kept": (probe) => keepsId(probe, idMax),
  "the lowest id of 64 bits is kept": async (probe) => {
    if (!(await probe.garden.isFree(idMin))) throw new Skipped("the garden has such a plant");
    probe.garden.claim(idMin);
    await keepsId(probe, idMin);
  },
  "an integer may be written as 1.0 or 1e3": async (probe) => {
    const id = probe.freshRoundId();
    await keepsId(probe, id, `${id}.0`);
    await keepsId(probe, id, `${id / 1_000n}e3`);
  },
  "an absent id is assigned, from 1 to 2^53−1": async (probe) => {
    const { id, answer } = await assign(probe);
    expectThat(id >= 1n && id < 2n ** 53n, `the assigned id is ${id}`, answer);
    const listed = await probe.garden.listBehind(id - 1n, "&limit=1&fields=id,name");
    expectJson(listed, [{ id, name: `${nameMark} assigned` }]);
  },
  "an assigned id is higher than those before, also after a deletion": async (probe) => {
    const first = await assign(probe);
    const second = await assign(probe);
    expectThat(second.id > first.id, `${second.id} came after ${first.id}`, second.answer);
    expectStatus(await probe.garden.delete(second.id), 204);
    const third = await assign(probe);
    expectThat(third.id > second.id, `${third.id} came after ${second.id}`, third.answer);
  },
  "gardens do not block each other's ids": async (probe) => {
    const { second, garden } = probe;
    const draft = probe.draft("same id");
    expectStatus(await garden.create(draft), 201);
    expectStatus(await second.create({ ...draft, tag: "other garden" }), 201);
  },
});
