/** The open garden: its list, its numbers, and what is done to plants and undone. */
import { describe, expect, spyOn, test } from "bun:test";
import { effect } from "@preact/signals";
import { openState, until, url } from "../test/open-state.ts";
import { toText } from "../testing/message-text.ts";
import { Api } from "./api.ts";
import { announcement, forgetUndo, nextUndo, notice, question, undo } from "./message.ts";
import { Selection } from "./selection.ts";

const { fetch, makeGarden, openGarden } = openState();

async function openSelection(plants: readonly string[]) {
  const opened = await openGarden(plants);
  const selection = new Selection(opened.garden);
  const select = (...indexes: number[]) => {
    for (const index of indexes) selection.togglePlant(index, false);
  };
  return { ...opened, selection, select };
}

describe("a garden", () => {
  test("shows its plants, and those with words, an id or a tag, with how many", async () => {
    const { garden, shown, note } = await openGarden(["Fern:shade", "Ivy:wall", "Tree fern"]);
    expect([shown(), note()]).toEqual([["Fern", "Ivy", "Tree fern"], "3 plants, 2 tags"]);
    garden.show({ q: "fern" });
    expect(garden.isComing.value).toBe(true);
    await until(() => !garden.isComing.value);
    expect([shown(), note()]).toEqual([["Fern", "Tree fern"], "2 plants with “fern”"]);
    expect(toText(announcement.value)).toBe("2 plants with “fern”");
    garden.show({ tag: "wall" });
    await until(() => !garden.isComing.value);
    expect([shown(), note()]).toEqual([["Ivy"], "1 plant tagged “wall”"]);
    garden.show({ q: "2" });
    await until(() => !garden.isComing.value);
    expect([shown(), note()]).toEqual([["Ivy"], "1 plant with “2”"]);
  });

  test("shows the list that was asked for last, whichever response comes first", async () => {
    const { api, garden, shown } = await openGarden(["Fern", "Ivy"]);
    const slow = Promise.withResolvers<{ plants: never[]; next: undefined }>();
    using _ = spyOn(api, "listPage").mockReturnValueOnce(slow.promise);
    garden.show({ q: "fern" });
    garden.show({ q: "ivy" });
    await until(() => !garden.isComing.value);
    slow.resolve({ plants: [], next: undefined });
    await Bun.sleep(0);
    expect(shown()).toEqual(["Ivy"]);
  });

  test("says that it found 1,000 or more while a search goes on", async () => {
    const figs = Array.from({ length: 1_700 }, (_, index) => `Fig ${index}`);
    const { garden, note } = await openGarden(figs, { q: "fig" });
    expect(note()).toBe("1,000 or more plants with “fig”, more as you scroll");
    await garden.loadMore();
    await garden.loadMore();
    expect(note()).toBe("1,700 plants with “fig”");
  });

  test("ends a search that nothing can match, and says why", async () => {
    const { garden, note } = await openGarden(["Fern"], { q: "´" });
    expect(note()).toBe("");
    expect(String(garden.list.value.error.value)).toContain("accents only");
    expect(garden.isLoading).toBe(false);
  });

  test("has a plant whose id is searched for once, in all pages together", async () => {
    const api = new Api({ url, token: await makeGarden(Array(1_002).fill("No. 1002")), fetch });
    const found = (await Array.fromAsync(api.listPages({ q: "1002" }))).flat();
    expect([found.length, new Set(found.map(({ id }) => id)).size]).toEqual([1_002, 1_002]);
  });

  test("is not reached if a proxy responds in its place, like the service or not", async () => {
    const contacts: boolean[] = [];
    const onContact = (isReached: boolean) => void contacts.push(isReached);
    const problem = { "content-type": "application/problem+json", "retry-after": "99" };
    for (const headers of [problem, { ...problem, "x-request-id": "r" }]) {
      const respond = async () => new Response("{}", { status: 503, headers });
      await new Api({ url, token: "t", onContact, fetch: respond }).me().catch(() => {});
    }
    expect(contacts).toEqual([false, true]);
  });

  test("shows plants and their numbers at the same moment, whoever changed them", async () => {
    const { api, garden, shown, note } = await openGarden(["Fern:shade"]);
    const seen: string[] = [];
    const stop = effect(() => {
      const tags = garden.summary.value?.tags.map(({ tag, plants }) => `${plants} ${tag}`);
      const state = `${shown().join(" and ")}: ${note()}, ${tags?.join(" and ")}`;
      if (state !== seen.at(-1)) seen.push(state);
    });
    await api.create({ name: "Moss", tag: "shade" });
    garden.follow(await api.eventsBefore(undefined, 1));
    garden.showAdded(await api.create({ name: "Rose", tag: "sun" }));
    await api.delete(2);
    garden.follow(await api.eventsBefore(undefined, 1));
    stop();
    expect(seen).toEqual([
      "Fern: 1 plant, 1 tag, 1 shade",
      "Fern and Moss: 2 plants, 1 tag, 2 shade",
      "Fern and Moss and Rose: 3 plants, 2 tags, 2 shade and 1 sun",
      // Its row stays where it is while it's in view.
      "Fern and Moss and Rose: 2 plants, 2 tags, 1 shade and 1 sun",
    ]);
  });

  test("counts again what it can't know from its rows", async () => {
    const { api, garden, note } = await openGarden(["Fern:shade", "Moss:shade"], { q: "fern" });
    // Not in this list, so the page doesn't know which tag it had.
    await api.update(2, { tag: "wall" });
    garden.follow(await api.eventsBefore(undefined, 1));
    await until(() => garden.summary.value?.tags.length === 2);
    garden.show({ tag: "wall" });
    await until(() => !garden.isComing.value);
    expect(note()).toBe("1 plant tagged “wall”");
  });

  test("shows up to 1,000 plants by name, and 1,001 by id until they are sorted", async () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `Fig ${1_000 - index}`);
    const few = await openGarden(names);
    expect(few.shown().slice(0, 3)).toEqual(["Fig 1", "Fig 2", "Fig 3"]);
    const { garden, shown } = await openGarden([...names, "Fig 0"]);
    expect([shown()[0], shown().length]).toEqual(["Fig 1000", 500]);
    garden.show({ sort: "name" });
    await until(() => !garden.isComing.value);
    expect([shown()[0], shown().length]).toEqual(["Fig 0", 1_001]);
    expect(garden.list.value.order).toEqual({ by: "name", isDown: false });
  });

  test("leaves more than 10,000 plants by id, whatever they are to be sorted by", async () => {
    const names = Array.from({ length: 10_001 }, (_, index) => `Fig ${10_001 - index}`);
    const { garden, shown } = await openGarden(names, { sort: "name" });
    expect(garden.list.value.order).toEqual({ by: "id", isDown: false });
    expect([shown()[0], garden.isSortable.value]).toEqual(["Fig 10001", false]);
  });

  test("can undo that a plant was added, unless somebody has changed it since", async () => {
    const { api, garden, stored } = await openGarden([]);
    for (const name of ["Fern", "Ivy"]) garden.showAdded(await api.create({ name }));
    await undo();
    expect(await stored()).toEqual(["Fern:"]);
    await api.put(1, { name: "Tree fern" });
    await undo();
    expect(await stored()).toEqual(["Tree fern:"]);
    expect(toText(notice.value?.text)).toBe(
      "Somebody else has changed or deleted “Fern”, so it stays as it is.",
    );
  });

  test("can undo that a plant was saved, but keeps what somebody else changed since", async () => {
    const { api, garden, shown, stored } = await openGarden(["Fern:hall"]);
    const [fern] = garden.list.value.plants;
    if (!fern) throw new Error("The list is empty.");
    const saved = await api.save(fern, { ...fern, name: "Tree fern" });
    garden.showSaved(fern, saved, "saved");
    await api.update(1, { tag: "pond" });
    await undo();
    expect(await stored()).toEqual(["Fern:pond"]);
    expect(shown()).toEqual(["Fern"]);
  });

  test("restores deleted plants with their ids, and says which ids are taken", async () => {
    const { api, garden, shown, stored } = await openGarden(["Fern:shade", "Ivy", "Moss"]);
    await api.deleteMany([1n, 2n]);
    garden.showDeleted(garden.list.value.plants.slice(0, 2));
    expect(toText(nextUndo.value?.text)).toBe("2 plants were deleted.");
    expect(shown()).toEqual(["Moss"]);
    await api.create({ id: 2, name: "Rose" });
    await undo();
    expect(await stored()).toEqual(["Fern:shade", "Rose:", "Moss:"]);
    expect(toText(notice.value?.text)).toStartWith("Restored 1 of 2 plants. ");
    expect(nextUndo.value).toBeUndefined();
  });

  test("can restore plants later if there is no room for them now", async () => {
    const { api, garden } = await openGarden(["Fern"]);
    garden.showDeleted(garden.list.value.plants);
    const refused = { status: 507, code: "storage-full", detail: "The garden is full." } as const;
    using _ = spyOn(api, "createMany").mockResolvedValue([refused]);
    await undo();
    expect(toText(notice.value?.text)).toEndWith("again. The garden is full.");
    expect(toText(nextUndo.value?.text)).toBe("“Fern” was deleted.");
    forgetUndo();
    expect(nextUndo.value).toBeUndefined();
  });
});

describe("selected plants", () => {
  test("are deleted together, except for those that somebody else changed", async () => {
    const { api, selection, select, stored } = await openSelection(["Fern", "Ivy", "Moss", "Rose"]);
    select(0, 1, 2);
    await api.put(2, { name: "Hedera" });
    await selection.delete();
    expect(await stored()).toEqual(["Hedera:", "Rose:"]);
    expect(toText(notice.value?.text)).toBe(
      "Somebody else changed or deleted 1 of these plants. Nothing was done to it.",
    );
    expect(selection.size.value).toBe(0);
  });

  test.each([0, 1, 2])(
    "can be restored although the response was lost, if %d of 2 were deleted",
    async (count) => {
      const { api, selection, select, stored } = await openSelection(["Fern", "Ivy", "Moss"]);
      select(0, 1);
      const deleteMany = api.deleteMany.bind(api);
      using _ = spyOn(api, "deleteMany").mockImplementation(async (ids) => {
        await deleteMany([...(ids as bigint[])].slice(0, count));
        throw new Error("lost");
      });
      await selection.delete();
      expect(toText(notice.value?.text)).toBe(
        "Some plants may not have been changed or deleted. lost",
      );
      expect(toText(nextUndo.value?.text)).toBe("At least 0, at most 2 plants were deleted.");
      await undo();
      expect(toText(notice.value?.text)).toBe("2 plants are back.");
      expect(await stored()).toEqual(["Fern:", "Ivy:", "Moss:"]);
    },
  );

  test("get their old tags back although the response was lost", async () => {
    const { api, selection, select, stored } = await openSelection(["Fern:a", "Ivy:b", "Moss"]);
    select(0, 1);
    const updateMany = api.updateMany.bind(api);
    using losing = spyOn(api, "updateMany").mockImplementation(async (...call) => {
      await updateMany(...call);
      throw new Error("lost");
    });
    await selection.changeTag("hall");
    losing.mockRestore();
    expect(toText(nextUndo.value?.text)).toBe(
      "At least 0, at most 2 plants have the tag “hall” now.",
    );
    await undo();
    expect(await stored()).toEqual(["Fern:a", "Ivy:b", "Moss:"]);
    expect(toText(notice.value?.text)).toBe("2 plants have their old tags again.");
  });

  test("are deleted to the last one, although less of the list is loaded since", async () => {
    const figs = Array.from({ length: 1_500 }, (_, index) => `Fig ${index}`);
    const { garden, selection } = await openSelection(figs);
    await selection.toggleAll();
    await garden.refresh();
    const deleting = selection.delete();
    await until(() => question.value !== undefined);
    question.value?.answer(true);
    await deleting;
    expect(toText(nextUndo.value?.text)).toBe("1,500 plants were deleted.");
  });

  test("have the tags that are shown now, not those from when they were selected", async () => {
    const { api, garden, selection, select, stored } = await openSelection(["Fern:hall", "Ivy"]);
    select(0);
    garden.showRead(1n, await api.put(1, { name: "Fern", tag: "pond" }));
    await selection.changeTag("hall");
    expect(await stored()).toEqual(["Fern:hall", "Ivy:"]);
    await undo();
    expect(await stored()).toEqual(["Fern:pond", "Ivy:"]);
  });

  test("get another tag, and undoing keeps what somebody else changed since", async () => {
    const plants = ["Fern:a", "Ivy:b", "Moss", "Rose"];
    const { api, selection, select, stored } = await openSelection(plants);
    select(0, 1, 2);
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
