/** Create: what comes back, and when nothing is created. */
import { expectHeader, expectJson, expectStatus, expectThat } from "../expectation.ts";
import { rulesOf } from "../rule.ts";

export const createRules = rulesOf("create", {
  "a create is 201": async (probe) => {
    expectStatus(await probe.garden.create(probe.draft("created")), 201);
  },
  "its body is name and tag, and nothing else": async (probe) => {
    const draft = probe.draft("body");
    const { name, tag } = draft;
    expectJson(await probe.garden.create(draft), { name, tag });
  },
  "its body is application/json": async (probe) => {
    const answer = await probe.garden.create(probe.draft("type"));
    expectHeader(answer, "Content-Type", /^application\/json(?:; ?charset=utf-8)?$/i);
  },
  "its Location is {base path}/plants/{id}": async (probe) => {
    const draft = probe.draft("location");
    const location = `${probe.line.basePath}/plants/${draft.id}`;
    expectHeader(await probe.garden.create(draft), "Location", location);
  },
  "a created plant is in the list at once": async (probe) => {
    const draft = probe.draft("at once");
    const { id, name, tag } = draft;
    await probe.garden.create(draft);
    for (let times = 0; times < 4; times++) {
      expectJson(await probe.garden.listBehind(id - 1n, "&limit=1"), [{ name, tag }]);
    }
  },
  "a taken id is 409": async (probe) => {
    const draft = probe.draft("taken");
    expectStatus(await probe.garden.create(draft), 201);
    expectStatus(await probe.garden.create({ ...draft, tag: "second" }), 409);
    expectStatus(await probe.garden.create(draft), 409);
  },
  "a create that is 409 changes nothing": async (probe) => {
    const draft = probe.draft("unchanged");
    const { id, name, tag } = draft;
    await probe.garden.create(draft);
    await probe.garden.create({ ...draft, tag: "second" });
    expectJson(await probe.garden.listBehind(id - 1n, "&limit=2"), [{ name, tag }]);
  },
  "of creates with one id at the same time one is 201, the others are 409": async (probe) => {
    const draft = probe.draft("at the same time");
    const creates = Array.from({ length: 8 }, (_, index) =>
      probe.garden.create({ ...draft, tag: String(index) }),
    );
    const statuses = (await Promise.all(creates)).map(({ status }) => status).toSorted();
    expectThat(statuses.join() === "201,409,409,409,409,409,409,409", `they are ${statuses}`);
  },
  "a create that is 400 creates nothing": async (probe) => {
    const draft = probe.draft("not created");
    await probe.garden.create({ ...draft, colour: "green" });
    await probe.garden.create({ ...draft, tag: null });
    expectJson(await probe.garden.listBehind(draft.id - 1n), []);
  },
});
