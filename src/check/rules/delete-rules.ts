/** Delete: a plant goes, and only that one; a refusal tells nothing about other gardens. */
import type { Answer } from "../answer.ts";
import {
  expectFaults,
  expectHeader,
  expectJson,
  expectStatus,
  expectThat,
} from "../expectation.ts";
import { rulesOf } from "../rule.ts";
import type { Garden } from "../tended-garden.ts";

/** With an id of the request that is always the same, so that answers can be compared whole. */
function deleteSteadily(garden: Garden, id: bigint): Promise<Answer> {
  return garden.ask(`DELETE /plants/${id}`, { headers: { "X-Request-Id": "check" } });
}

function expectSameBody(answer: Answer, other: Answer): void {
  expectStatus(answer, 404);
  expectStatus(other, 404);
  expectThat(answer.text === other.text, `the body must be ${other.text}`, answer);
}

export const deleteRules = rulesOf("delete", {
  "a delete is 204 without a body": async (probe) => {
    const draft = probe.draft("deleted");
    await probe.garden.create(draft);
    const answer = await probe.garden.delete(draft.id);
    expectStatus(answer, 204);
    expectThat(answer.surplusBytes === 0, "a body came", answer);
    expectHeader(answer, "Content-Type", undefined);
  },
  "a deleted plant is gone from the list at once, and no other is": async (probe) => {
    const drafts = [probe.draft("stays"), probe.draft("goes"), probe.draft("stays too")] as const;
    for (const draft of drafts) await probe.garden.create(draft);
    await probe.garden.delete(drafts[1].id);
    const left = [drafts[0], drafts[2]].map(({ name, tag }) => ({ name, tag }));
    for (let times = 0; times < 4; times++) {
      expectJson(await probe.garden.listBehind(drafts[0].id - 1n), left);
    }
  },
  "a second delete is 404": async (probe) => {
    const draft = probe.draft("twice");
    await probe.garden.create(draft);
    expectStatus(await probe.garden.delete(draft.id), 204);
    expectStatus(await probe.garden.delete(draft.id), 404);
  },
  "of deletes of one plant at the same time one is 204": async (probe) => {
    const draft = probe.draft("at the same time");
    await probe.garden.create(draft);
    const deletes = Array.from({ length: 6 }, () => probe.garden.delete(draft.id));
    const statuses = (await Promise.all(deletes)).map(({ status }) => status).toSorted();
    expectThat(statuses.join() === "204,404,404,404,404,404", `they are ${statuses}`);
  },
  "an id that no plant has is 404": async (probe) => {
    expectStatus(await probe.garden.delete(probe.freshId()), 404);
  },
  "404 is the same for a plant that is gone and one that never was": async (probe) => {
    const draft = probe.draft("gone");
    await probe.garden.create(draft);
    await probe.garden.delete(draft.id);
    const never = await deleteSteadily(probe.garden, probe.freshId());
    expectSameBody(await deleteSteadily(probe.garden, draft.id), never);
  },
  "404 is the same for a plant of another garden": async (probe) => {
    const { second, garden } = probe;
    const draft = probe.draft("another's");
    expectStatus(await garden.create(draft), 201);
    const never = await deleteSteadily(second, probe.freshId());
    expectSameBody(await deleteSteadily(second, draft.id), never);
  },
  "a plant of another garden is not deleted": async (probe) => {
    const { second, garden } = probe;
    const draft = probe.draft("another's");
    const { id, name, tag } = draft;
    await garden.create(draft);
    await second.delete(id);
    expectJson(await garden.listBehind(id - 1n), [{ name, tag }]);
  },
  "a delete of an id that is no integer is 400": async (probe) => {
    const id = probe.freshId();
    for (const text of ["x", `${id}.5`, `${id}x`, "%20", `${id}%20`]) {
      expectFaults(await probe.garden.ask(`DELETE /plants/${text}`), "id");
    }
  },
  "a delete of an id not in its shortest form is 400": async (probe) => {
    const id = probe.freshId();
    for (const text of [`0${id}`, `+${id}`, `%2B${id}`, `${id}.0`, `${id}e0`]) {
      expectFaults(await probe.garden.ask(`DELETE /plants/${text}`), "id");
    }
  },
  "a delete of an id beyond 64 bits is 400": async (probe) => {
    // Cut to 64 bits they would be ids of this run.
    const id = probe.freshId();
    for (const beyond of [2n ** 64n + id, -(2n ** 64n) + id]) {
      expectFaults(await probe.garden.delete(beyond), "id");
    }
  },
  "the id of a deleted plant is free again": async (probe) => {
    const draft = probe.draft("again");
    await probe.garden.create(draft);
    await probe.garden.delete(draft.id);
    expectStatus(await probe.garden.create(draft), 201);
  },
});
