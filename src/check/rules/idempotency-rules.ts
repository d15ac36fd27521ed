/** Idempotency: a create that is sent again with its key. */
import {
  expectFaults,
  expectHeader,
  expectJson,
  expectStatus,
  expectThat,
} from "../expectation.ts";
import { rulesOf } from "../rule.ts";
import { nameMark } from "../tended-garden.ts";

function keyed(key: string = crypto.randomUUID()): { "Idempotency-Key": string } {
  return { "Idempotency-Key": key };
}

/** The service assigns its id, so that a second plant would get another. */
const unnumbered = { name: `${nameMark} idempotent`, tag: "key" };

export const idempotencyRules = rulesOf("idempotency", {
  "the same key and request give the same status, body and Location": async ({ garden }) => {
    const key = keyed();
    const first = await garden.create(unnumbered, key);
    expectStatus(first, 201);
    const second = await garden.create(unnumbered, key);
    expectStatus(second, 201);
    expectJson(second, unnumbered);
    expectHeader(second, "Location", first.header("Location"));
  },
  "a replay says Idempotency-Replayed: true, a first answer does not": async (probe) => {
    const [key, draft] = [keyed(), probe.draft("replayed")];
    expectHeader(await probe.garden.create(draft, key), "Idempotency-Replayed", undefined);
    expectHeader(await probe.garden.create(draft, key), "Idempotency-Replayed", "true");
  },
  "retries at the same time create one plant": async ({ garden }) => {
    const key = keyed();
    const creates = Array.from({ length: 6 }, () => garden.create(unnumbered, key));
    const answers = await Promise.all(creates);
    const locations = new Set(answers.map((answer) => answer.header("Location")));
    expectThat(locations.size === 1, `they got ${[...locations].join(" and ")}`, answers[0]);
    for (const answer of answers) expectStatus(answer, 201);
  },
  "a replay does not bring a deleted plant back": async (probe) => {
    const [key, draft] = [keyed(), probe.draft("deleted")];
    await probe.garden.create(draft, key);
    await probe.garden.delete(draft.id);
    expectStatus(await probe.garden.create(draft, key), 201);
    expectJson(await probe.garden.listBehind(draft.id - 1n), []);
  },
  "the same key with another request is 422": async (probe) => {
    const [key, draft] = [keyed(), probe.draft("first")];
    await probe.garden.create(draft, key);
    const { name, tag } = draft;
    const others = [
      { ...draft, name: `${name}!` },
      { ...draft, tag: "other" },
      { name, tag },
    ];
    for (const other of others) expectStatus(await probe.garden.create(other, key), 422);
  },
  "a request that is 422 creates nothing": async (probe) => {
    const [key, draft] = [keyed(), probe.draft("first")];
    await probe.garden.create(draft, key);
    const other = probe.draft("second");
    await probe.garden.create(other, key);
    expectJson(await probe.garden.listBehind(other.id - 1n), []);
  },
  "a request in another spelling of JSON is the same": async (probe) => {
    const [key, { id, name, tag }] = [keyed(), probe.draft("spelling")];
    await probe.garden.create({ name, tag, id }, key);
    const escaped = JSON.stringify(tag).replace("s", "\\u0073");
    const text = `{ "id": ${id}, "tag": ${escaped}, "name": ${JSON.stringify(name)} }`;
    expectHeader(await probe.garden.create(text, key), "Idempotency-Replayed", "true");
  },
  "a key is the same bare and in double quotes": async (probe) => {
    const [key, draft] = [crypto.randomUUID(), probe.draft("quoted")];
    expectStatus(await probe.garden.create(draft, keyed(key)), 201);
    const answer = await probe.garden.create(draft, keyed(`"${key}"`));
    expectHeader(answer, "Idempotency-Replayed", "true");
  },
  "a key has 1 to 255 visible ASCII characters": async (probe) => {
    const random = crypto.randomUUID();
    for (const key of [random.padEnd(255, "~"), `!#$%&'()*+,-./:;<=>?@[]^_\`{|}~${random}`]) {
      expectStatus(await probe.garden.create(probe.draft("key"), keyed(key)), 201);
    }
  },
  "another key is 400 and named": async (probe) => {
    for (const key of ["k".repeat(256), "", '""', "a b", "caf\u00e9"]) {
      const answer = await probe.garden.create(probe.draft("bad key"), keyed(key));
      expectFaults(answer, "Idempotency-Key");
    }
  },
  "a request that was refused is not remembered": async (probe) => {
    const [key, draft] = [keyed(), probe.draft("mended")];
    expectStatus(await probe.garden.create({ ...draft, tag: null }, key), 400);
    expectStatus(await probe.garden.create(draft), 201);
    expectStatus(await probe.garden.create(draft, key), 409);
    const other = await probe.garden.create(probe.draft("free id"), key);
    expectStatus(other, 201);
    expectHeader(other, "Idempotency-Replayed", undefined);
  },
  "gardens do not share keys": async (probe) => {
    const { second, garden } = probe;
    const [key, draft] = [keyed(), probe.draft("own key")];
    expectStatus(await garden.create(draft, key), 201);
    const answer = await second.create({ ...draft, tag: "other" }, key);
    expectStatus(answer, 201);
    expectHeader(answer, "Idempotency-Replayed", undefined);
  },
});
