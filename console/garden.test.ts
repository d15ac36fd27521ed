/** The open garden: its list, its numbers, and what is done to plants and undone. */
import { describe, expect, spyOn, test } from "bun:test";
import { openState, toText, until, url } from "../test/open-state.ts";
import { Api } from "./api.ts";
import { Garden } from "./garden.ts";
import {
  announcement,
  dismissUndo,
  nextUndo,
  notice,
  offerUndo,
  question,
  undo,
} from "./message.ts";
import { Selection } from "./selection.ts";
import { describeSize } from "./words.ts";

const { fetch, makeGarden } = openState();

async function open(names: readonly string[], query = {}) {
  const token = await makeGarden(names);
  const api = new Api({ url, token, fetch });
  const garden = new Garden(api);
  const selection = new Selection(garden);
  dismissUndo();
  const namesOf = () => garden.list.value.plants.map(({ name }) => name);
  const title = () => describeSize(garden.list.value, garden.summary.value);
  garden.show(query);
  await until(() => garden.list.value.isComplete || garden.list.value.error.value !== undefined);
  const select = (...ids: bigint[]) => {
    selection.toggle();
    for (const id of ids) {
      const index = garden.list.value.plants.findIndex((plant) => plant.id === id);
      selection.togglePlant(index, false);
    }
  };
  const stored = async () => (await api.page()).plants.map(({ name, tag }) => `${name}:${tag}`);
  return { api, token, garden, selection, namesOf, title, select, stored };
}

describe("a garden", () => {
  test("shows its plants, and those with words, an id or a tag, with how many", async () => {
    const { garden, namesOf, title } = await open(["Fern:shade", "Ivy:wall", "Tree fern"]);
    expect([namesOf(), title()]).toEqual([["Fern", "Ivy", "Tree fern"], "3 plants"]);
    garden.show({ q: "fern" });
    expect(garden.isComing.value).toBe(true);
    await until(() => !garden.isComing.value);
    expect([namesOf(), title()]).toEqual([["Fern", "Tree fern"], "2 plants"]);
    expect(toText(announcement.value)).toBe("2 plants with “fern”");
    for (const query of [{ tag: "wall" }, { q: "2" }]) {
      garden.show(query);
      await until(() => !garden.isComing.value);
      expect([namesOf(), title()]).toEqual([["Ivy"], "1 plant"]);
    }
  });

  test("says that it found 500 or more while a search goes on", async () => {
    const names = Array.from({ length: 700 }, (_, index) => `Fig ${index}`);
    const token = await makeGarden(names);
    const garden = new Garden(new Api({ url, token, fetch }));
    garden.show({ q: "fig" });
    await until(() => garden.list.value.isLoaded);
    expect(describeSize(garden.list.value, garden.summary.value)).toBe("500 or more plants");
    await garden.loadMore();
    expect(describeSize(garden.list.value, garden.summary.value)).toBe("700 plants");
  });

  test("ends a search that nothing can match, and says why", async () => {
    const { garden, title } = await open(["Fern"], { q: "´" });
    expect(title()).toBe("Your garden");
    expect(String(garden.list.value.error.value)).toContain("accents only");
    expect(garden.isLoading).toBe(false);
  });

  test("has a plant whose id is searched for once, in all pages together", async () => {
    const api = new Api({ url, token: await makeGarden(Array(1_002).fill("No. 1002")), fetch });
    const pages = await Array.fromAsync(api.listPages({ q: "1002" }));
    expect(new Set(pages.flat().map(({ id }) => id)).size).toBe(1_002);
    expect(pages.flat()).toHaveLength(1_002);
  });

  test("is not reached if a proxy responds in its place, like the service or not", async () => {
    const contacts: boolean[] = [];
    const onContact = (isReached: boolean) => void contacts.push(isReached);
    const problem = { "content-type": "application/problem+json", "retry-after": "99" };
    const respond = (headers = {}) => new Response("{}", { status: 503, headers });
    for (const response of [respond(problem), respond({ ...problem, "x-request-id": "r" })]) {
      const api = new Api({ url, token: "t", onContact, fetch: async () => response });
      await api.me().catch(() => {});
    }
    expect(contacts).toEqual([false, true]);
  });

  test("counts plants and tags together", async () => {
    const { api, garden, title } = await open(["Fern:shade"]);
    await api.create({ name: "Moss", tag: "shade" });
    const [event] = await api.eventsBefore();
    const seen: string[] = [];
    garden.summary.subscribe(() => {
      const tags = garden.summary.value?.tags.map(({ plants }) => plants) ?? [];
      seen.push(`${title()}, ${tags}`);
    });
    garden.follow([event as NonNullable<typeof event>]);
    await until(() => seen.length === 2);
    expect(seen).toEqual(["1 plant, 1", "2 plants, 2"]);
  });

  test("restores deleted plants with their ids, and says which ids are taken", async () => {
    const { api, garden, namesOf, stored } = await open(["Fern:shade", "Ivy", "Moss"]);
    const [fern, ivy] = garden.list.value.plants as [never, never];
    await api.deleteMany([1n, 2n]);
    garden.showDeleted([fern, ivy]);
    expect(toText(nextUndo.value?.text)).toBe("2 plants were deleted.");
    expect(namesOf()).toEqual(["Moss"]);
    await api.create({ id: 2, name: "Rose" });
    await undo();
    expect(await stored()).toEqual(["Fern:shade", "Rose:", "Moss:"]);
    expect(toText(notice.value?.text)).toStartWith("Restored 1 of 2 plants. ");
    expect(nextUndo.value).toBeUndefined();
  });

  test("can restore plants later if there is no room for them now", async () => {
    const { api, garden } = await open(["Fern"]);
    garden.showDeleted(garden.list.value.plants);
    const refused = { status: 507, code: "storage-full", detail: "The garden is full." } as const;
    using _ = spyOn(api, "createMany").mockResolvedValue([refused]);
    await undo();
    expect(toText(notice.value?.text)).toEndWith("The garden is full.");
    expect(toText(nextUndo.value?.text)).toBe("“Fern” was deleted.");
  });

  test("keeps a step that could not be undone", async () => {
    const run = () => Promise.reject(new Error("No."));
    offerUndo("Done.", run);
    await undo();
    expect(nextUndo.value?.text).toBe("Done.");
    expect(toText(notice.value?.text)).toContain("It’s safe to undo again.");
    dismissUndo();
    expect(nextUndo.value).toBeUndefined();
  });
});

describe("selected plants", () => {
  test("are deleted together, except for those that somebody else changed", async () => {
    const { api, selection, select, stored } = await open(["Fern", "Ivy", "Moss", "Rose"]);
    select(1n, 2n, 3n);
    await api.put(2, { name: "Hedera" });
    await selection.delete();
    expect(await stored()).toEqual(["Hedera:", "Rose:"]);
    expect(toText(notice.value?.text)).toBe(
      "Somebody else changed or deleted 1 of these plants. Nothing was done to it.",
    );
    expect(selection.isOn.value).toBe(false);
  });

  test("are deleted to the last one, although less of the list is loaded since", async () => {
    const token = await makeGarden(Array.from({ length: 1_500 }, (_, index) => `Fig ${index}`));
    const garden = new Garden(new Api({ url, token, fetch }));
    const selection = new Selection(garden);
    garden.show({});
    await until(() => garden.list.value.isLoaded);
    selection.toggle();
    await selection.toggleAll();
    await garden.refresh();
    const deleting = selection.delete();
    await until(() => question.value !== undefined);
    question.value?.answer(true);
    await deleting;
    expect(toText(nextUndo.value?.text)).toBe("1,500 plants were deleted.");
  });

  test("have the tags that are shown now, not those from when they were selected", async () => {
    const { api, garden, selection, select, stored } = await open(["Fern:hall", "Ivy"]);
    select(1n);
    garden.showRead(1n, await api.put(1, { name: "Fern", tag: "pond" }));
    await selection.changeTag("hall");
    expect(await stored()).toEqual(["Fern:hall", "Ivy:"]);
    await undo();
    expect(await stored()).toEqual(["Fern:pond", "Ivy:"]);
  });

  test("get another tag, and undoing keeps what somebody else changed since", async () => {
    const { api, selection, select, stored } = await open(["Fern:a", "Ivy:b", "Moss", "Rose"]);
    select(1n, 2n, 3n);
    await api.delete(3);
    await selection.changeTag("hall");
    expect(await stored()).toEqual(["Fern:hall", "Ivy:hall", "Rose:"]);
    expect(toText(nextUndo.value?.text)).toBe("2 plants have the tag “hall” now.");
    await api.put(2, { name: "Ivy", tag: "porch" });
    await undo();
    expect(await stored()).toEqual(["Fern:a", "Ivy:porch", "Rose:"]);
    expect(toText(notice.value?.text)).toBe("1 plant has its old tag again.");
  });
});
