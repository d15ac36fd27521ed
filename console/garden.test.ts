/** The open garden: its list, its numbers, and what is done to plants and undone. */
import { describe, expect, spyOn, test } from "bun:test";
import { effect } from "@preact/signals";
import type { PlantDraft } from "../client/plant-store.ts";
import { openState, until, url } from "../test/open-state.ts";
import { toText } from "../testing/message-text.ts";
import { Api, type Page } from "./api.ts";
import { Garden } from "./garden.ts";
import { announcement, forgetUndo, nextUndo, notice, question, undo } from "./message.ts";
import { Selection } from "./selection.ts";

const { fetch, makeGarden, openGarden } = openState();

const shownNotice = () => toText(notice.value?.text);
/** What the next undo would take back. */
const nextUndoText = () => toText(nextUndo.value?.text);

/** `Fig 1`, `Fig 2` and so on. */
function makeFigs(count: number) {
  return Array.from({ length: count }, (_, index) => ({ name: `Fig ${index + 1}` }));
}

describe("a list", () => {
  test("has all plants at first, and says how many", async () => {
    const { shownNames, note } = await openGarden([
      { name: "Fern", tag: "shade" },
      { name: "Ivy", tag: "wall" },
      { name: "Tree fern" },
    ]);

    expect(shownNames()).toEqual(["Fern", "Ivy", "Tree fern"]);
    expect(note()).toBe("3 plants, 2 tags");
  });

  test("can be of plants with a word, and says so to screen readers, too", async () => {
    const { garden, shownNames, note } = await openGarden([
      { name: "Fern" },
      { name: "Ivy" },
      { name: "Tree fern" },
    ]);

    garden.show({ q: "fern" });
    expect(garden.isComing.value).toBe(true);
    await until(() => !garden.isComing.value);

    expect(shownNames()).toEqual(["Fern", "Tree fern"]);
    expect(note()).toBe("2 plants with “fern”");
    expect(toText(announcement.value.text)).toBe("2 plants with “fern”");
  });

  test("can be of plants with a tag", async () => {
    const { show, shownNames, note } = await openGarden([
      { name: "Fern", tag: "shade" },
      { name: "Ivy", tag: "wall" },
    ]);

    await show({ tag: "wall" });

    expect(shownNames()).toEqual(["Ivy"]);
    expect(note()).toBe("1 plant tagged “wall”");
  });

  test("can be of the plant with an id", async () => {
    const { show, shownNames, note } = await openGarden([{ name: "Fern" }, { name: "Ivy" }]);

    await show({ q: "2" });

    expect(shownNames()).toEqual(["Ivy"]);
    expect(note()).toBe("1 plant with “2”");
  });

  test("is the one that was requested last, whichever response comes first", async () => {
    const { api, garden, shownNames } = await openGarden([{ name: "Fern" }, { name: "Ivy" }]);
    const slow = Promise.withResolvers<Page>();
    using _ = spyOn(api, "listPage").mockReturnValueOnce(slow.promise);

    garden.show({ q: "fern" });
    garden.show({ q: "ivy" });
    await until(() => !garden.isComing.value);
    slow.resolve({ plants: [], next: undefined });
    await Bun.sleep(0);

    expect(shownNames()).toEqual(["Ivy"]);
  });

  test("of a search says that it has 1,000 or more plants until it's loaded to its end", async () => {
    const { garden, note } = await openGarden(makeFigs(1_700), { q: "fig" });
    expect(note()).toBe("1,000 or more plants with “fig”, more as you scroll");

    await garden.loadMore();
    await garden.loadMore();

    expect(note()).toBe("1,700 plants with “fig”");
  });

  test("of a search that can't match anything ends, and says why", async () => {
    const { garden, note } = await openGarden([{ name: "Fern" }], { q: "´" });

    expect(note()).toBe("");
    expect(String(garden.list.value.error.value)).toContain("accents only");
    expect(garden.isLoading).toBe(false);
  });

  test("has a plant once whose id and name match a search, over all pages", async () => {
    const plants = Array.from({ length: 1_002 }, () => ({ name: "No. 1002" }));
    const api = new Api({ url, token: await makeGarden(plants), fetch });

    const found = (await Array.fromAsync(api.listPages({ q: "1002" }))).flat();

    expect(found).toHaveLength(1_002);
    expect(new Set(found.map(({ id }) => id)).size).toBe(1_002);
  });

  test("of up to 1,000 plants is sorted by name", async () => {
    const { shownNames } = await openGarden(makeFigs(1_000).toReversed());

    expect(shownNames()).toHaveLength(1_000);
    expect(shownNames().slice(0, 3)).toEqual(["Fig 1", "Fig 2", "Fig 3"]);
  });

  test("of 1,001 plants is a first page by id until somebody sorts it", async () => {
    const { garden, show, shownNames } = await openGarden(makeFigs(1_001).toReversed());
    expect(shownNames()).toHaveLength(500);
    expect(shownNames()[0]).toBe("Fig 1001");

    await show({ sort: "name" });

    expect(shownNames()).toHaveLength(1_001);
    expect(shownNames()[0]).toBe("Fig 1");
    expect(garden.list.value.order).toEqual({ by: "name", isDown: false });
  });

  test("of more than 10,000 plants is by id and can't be sorted otherwise", async () => {
    const { garden, shownNames } = await openGarden(makeFigs(10_001).toReversed(), {
      sort: "name",
    });

    expect(garden.list.value.order).toEqual({ by: "id", isDown: false });
    expect(shownNames()[0]).toBe("Fig 10001");
    expect(garden.isSortable.value).toBe(false);
  });
});

describe("the service", () => {
  const problemHeaders = { "content-type": "application/problem+json", "retry-after": "99" };

  /** Whether a page that gets this response thinks that it has reached the service. */
  async function isReached(headers: Record<string, string>): Promise<boolean[]> {
    const contacts: boolean[] = [];
    const api = new Api({
      url,
      token: "t",
      onContact: (isContact) => void contacts.push(isContact),
      fetch: async () => new Response("{}", { status: 503, headers }),
    });
    await api.me().catch(() => {});
    return contacts;
  }

  test("was reached if it responds itself, even with a 503", async () => {
    expect(await isReached({ ...problemHeaders, "x-request-id": "r" })).toEqual([true]);
  });

  test("wasn't reached if a proxy responds in its place", async () => {
    expect(await isReached(problemHeaders)).toEqual([false]);
  });
});

describe("the numbers of a garden", () => {
  test("change at the same moment as its plants, whoever changed them", async () => {
    const { api, garden, shownNames, note } = await openGarden([{ name: "Fern", tag: "shade" }]);
    const states: string[] = [];
    const stop = effect(() => {
      const tags = garden.summary.value?.tags.map(({ tag, plants }) => `${plants} ${tag}`);
      const state = `${shownNames().join(" and ")}: ${note()}, ${tags?.join(" and ")}`;
      if (state !== states.at(-1)) states.push(state);
    });

    await api.create({ name: "Moss", tag: "shade" });
    garden.follow(await api.eventsBefore(undefined, 1));
    garden.showAdded(await api.create({ name: "Rose", tag: "sun" }));
    await api.delete(2);
    garden.follow(await api.eventsBefore(undefined, 1));
    stop();

    expect(states).toEqual([
      "Fern: 1 plant, 1 tag, 1 shade",
      "Fern and Moss: 2 plants, 1 tag, 2 shade",
      "Fern and Moss and Rose: 3 plants, 2 tags, 2 shade and 1 sun",
      // Its row stays where it is while it's in view.
      "Fern and Moss and Rose: 2 plants, 2 tags, 1 shade and 1 sun",
    ]);
  });

  test("have a new plant once, even if it's counted before its response is here", async () => {
    const isStored = Promise.withResolvers<void>();
    const isCounted = Promise.withResolvers<void>();
    let counts = 0;
    const api = new Api({
      url,
      token: await makeGarden([{ name: "Fern" }]),
      async fetch(target, init) {
        const response = await fetch(target, init);
        if (init.method === "POST") {
          isStored.resolve();
          await isCounted.promise;
        }
        if (target.includes("/tags")) counts++;
        return response;
      },
    });
    const garden = new Garden(api);
    garden.show({});
    await until(() => garden.list.value.isLoaded);
    const creating = api.create({ name: "Moss" });
    await isStored.promise;
    garden.recount();
    await until(() => counts === 2);
    await new Promise((resolve) => setTimeout(resolve, 20));
    isCounted.resolve();

    garden.showAdded(await creating);

    expect(garden.summary.value?.me.plants).toBe(2);
  });

  test("are counted again if the page can't know them from its rows", async () => {
    const { api, garden, show, note } = await openGarden(
      [
        { name: "Fern", tag: "shade" },
        { name: "Moss", tag: "shade" },
      ],
      { q: "fern" },
    );

    // Not in this list, so the page doesn't know which tag it had.
    await api.update(2, { tag: "wall" });
    garden.follow(await api.eventsBefore(undefined, 1));
    await until(() => garden.summary.value?.tags.length === 2);

    await show({ tag: "wall" });
    expect(note()).toBe("1 plant tagged “wall”");
  });
});

describe("an undo", () => {
  test("deletes the plant that was added last", async () => {
    const { api, garden, stored } = await openGarden([]);
    garden.showAdded(await api.create({ name: "Fern" }));
    garden.showAdded(await api.create({ name: "Ivy" }));

    await undo();

    expect(await stored()).toEqual([{ name: "Fern", tag: "" }]);
  });

  test("of an addition succeeds the second time if only its response was lost", async () => {
    const { api, garden, stored } = await openGarden([]);
    garden.showAdded(await api.create({ name: "Fern" }));
    const deleteShown = api.deleteShown.bind(api);
    using losing = spyOn(api, "deleteShown").mockImplementation(async (plant) => {
      await deleteShown(plant);
      throw new Error("lost");
    });

    await undo();
    losing.mockRestore();
    await undo();

    expect(shownNotice()).toBe("“Fern” was deleted again.");
    expect(await stored()).toEqual([]);
  });

  test("leaves an added plant as it is if somebody has changed it since", async () => {
    const { api, garden, stored } = await openGarden([]);
    garden.showAdded(await api.create({ name: "Fern" }));
    await api.put(1, { name: "Tree fern" });

    await undo();

    expect(await stored()).toEqual([{ name: "Tree fern", tag: "" }]);
    expect(shownNotice()).toBe(
      "Somebody else has changed or deleted “Fern”, so it stays as it is.",
    );
  });

  test("of a saved plant keeps what somebody else has changed since", async () => {
    const { api, garden, shownNames, stored } = await openGarden([{ name: "Fern", tag: "hall" }]);
    const fern = { id: 1n, name: "Fern", tag: "hall" };
    const saved = await api.save(fern, { ...fern, name: "Tree fern" });
    garden.showSaved(fern, saved, "saved");
    await api.update(1, { tag: "pond" });

    await undo();

    expect(await stored()).toEqual([{ name: "Fern", tag: "pond" }]);
    expect(shownNames()).toEqual(["Fern"]);
  });

  test("restores deleted plants with their ids, and says if an id is taken", async () => {
    const { api, garden, shownNames, stored } = await openGarden([
      { name: "Fern", tag: "shade" },
      { name: "Ivy" },
      { name: "Moss" },
    ]);
    await api.deleteMany([1n, 2n]);
    garden.showDeleted(garden.list.value.plants.slice(0, 2));
    expect(nextUndoText()).toBe("2 plants were deleted.");
    expect(shownNames()).toEqual(["Moss"]);
    await api.create({ id: 2, name: "Rose" });

    await undo();

    expect(await stored()).toEqual([
      { name: "Fern", tag: "shade" },
      { name: "Rose", tag: "" },
      { name: "Moss", tag: "" },
    ]);
    expect(shownNotice()).toStartWith("Restored 1 of 2 plants. ");
    expect(nextUndo.value).toBeUndefined();
  });

  test("that finds no room for the plants can be done later", async () => {
    const { api, garden } = await openGarden([{ name: "Fern" }]);
    garden.showDeleted(garden.list.value.plants);
    const refused = { status: 507, code: "storage-full", detail: "The garden is full." } as const;
    using _ = spyOn(api, "createMany").mockResolvedValue([refused]);

    await undo();

    expect(shownNotice()).toEndWith("again. The garden is full.");
    expect(nextUndoText()).toBe("“Fern” was deleted.");
  });

  test("can be forgotten", async () => {
    const { garden } = await openGarden([{ name: "Fern" }]);
    garden.showDeleted(garden.list.value.plants);

    forgetUndo();

    expect(nextUndo.value).toBeUndefined();
  });
});

describe("selected plants", () => {
  async function openSelection(plants: readonly PlantDraft[]) {
    const opened = await openGarden(plants);
    const selection = new Selection(opened.garden);
    const select = (...names: readonly string[]) => {
      for (const name of names) selection.togglePlant(opened.shownNames().indexOf(name), false);
    };
    return { ...opened, selection, select };
  }

  test("follow what the page does to one of them", async () => {
    const { api, garden, selection, select } = await openSelection([
      { name: "Fern" },
      { name: "Ivy" },
    ]);
    select("Fern", "Ivy");
    const [fern, ivy] = garden.list.value.plants;
    if (!fern || !ivy) throw new Error("They aren't listed.");

    const saved = await api.save(fern, { ...fern, name: "Royal fern" });
    garden.showSaved(fern, saved, "Saved.");
    await api.deleteShown(ivy);
    garden.showDeleted([ivy]);

    expect(selection.listShown()).toEqual([{ id: 1n, name: "Royal fern", tag: "" }]);
    await selection.delete();
    expect(nextUndoText()).toBe("“Royal fern” was deleted.");
  });

  test("are deleted together, except for those that somebody else changed", async () => {
    const { api, selection, select, stored } = await openSelection([
      { name: "Fern" },
      { name: "Ivy" },
      { name: "Moss" },
      { name: "Rose" },
    ]);
    select("Fern", "Ivy", "Moss");
    await api.put(2, { name: "Hedera" });

    await selection.delete();

    expect(await stored()).toEqual([
      { name: "Hedera", tag: "" },
      { name: "Rose", tag: "" },
    ]);
    expect(shownNotice()).toBe(
      "Somebody else changed or deleted 1 of these plants. Nothing was done to it.",
    );
    expect(selection.size.value).toBe(0);
  });

  test.each([0, 1, 2])(
    "can be restored although the response was lost, if %d of 2 were deleted",
    async (deletedCount) => {
      const { api, selection, select, stored } = await openSelection([
        { name: "Fern" },
        { name: "Ivy" },
        { name: "Moss" },
      ]);
      select("Fern", "Ivy");
      const deleteMany = api.deleteMany.bind(api);
      using _ = spyOn(api, "deleteMany").mockImplementation(async (ids) => {
        await deleteMany([...(ids as bigint[])].slice(0, deletedCount));
        throw new Error("lost");
      });

      await selection.delete();
      expect(shownNotice()).toBe("Some plants may not have been changed or deleted. lost");
      expect(nextUndoText()).toBe("At least 0, at most 2 plants were deleted.");

      await undo();
      expect(shownNotice()).toBe("2 plants are back.");
      expect(await stored()).toEqual([
        { name: "Fern", tag: "" },
        { name: "Ivy", tag: "" },
        { name: "Moss", tag: "" },
      ]);
    },
  );

  test("get their old tags back although the response was lost", async () => {
    const { api, selection, select, stored } = await openSelection([
      { name: "Fern", tag: "shade" },
      { name: "Ivy", tag: "wall" },
      { name: "Moss" },
    ]);
    select("Fern", "Ivy");
    const updateMany = api.updateMany.bind(api);
    using losing = spyOn(api, "updateMany").mockImplementation(async (...call) => {
      await updateMany(...call);
      throw new Error("lost");
    });

    await selection.changeTag("hall");
    losing.mockRestore();
    expect(nextUndoText()).toBe("At least 0, at most 2 plants have the tag “hall” now.");

    await undo();
    expect(await stored()).toEqual([
      { name: "Fern", tag: "shade" },
      { name: "Ivy", tag: "wall" },
      { name: "Moss", tag: "" },
    ]);
    expect(shownNotice()).toBe("2 plants have their old tags again.");
  });

  test("are deleted without a question if they are 1,000", async () => {
    const { selection } = await openSelection(makeFigs(1_000));
    await selection.toggleAll();

    await selection.delete();

    expect(question.value).toBeUndefined();
    expect(nextUndoText()).toBe("1,000 plants were deleted.");
  });

  test("are deleted after a question if they are 1,001", async () => {
    const { api, selection } = await openSelection(makeFigs(1_001));
    await selection.toggleAll();

    const deleting = selection.delete();
    await until(() => question.value !== undefined);
    expect((await api.me()).plants).toBe(1_001);
    question.value?.answer(true);
    await deleting;

    expect(nextUndoText()).toBe("1,001 plants were deleted.");
  });

  test("are deleted to the last one, although less of the list is loaded since", async () => {
    const { garden, selection } = await openSelection(makeFigs(1_500));
    await selection.toggleAll();
    await garden.refresh();

    const deleting = selection.delete();
    await until(() => question.value !== undefined);
    question.value?.answer(true);
    await deleting;

    expect(nextUndoText()).toBe("1,500 plants were deleted.");
  });

  test("get back the tags that were shown last, not those from when they were selected", async () => {
    const { api, garden, selection, select, stored } = await openSelection([
      { name: "Fern", tag: "hall" },
      { name: "Ivy" },
    ]);
    select("Fern");
    garden.showRead(1n, await api.put(1, { name: "Fern", tag: "pond" }));

    await selection.changeTag("hall");
    expect(await stored()).toEqual([
      { name: "Fern", tag: "hall" },
      { name: "Ivy", tag: "" },
    ]);

    await undo();
    expect(await stored()).toEqual([
      { name: "Fern", tag: "pond" },
      { name: "Ivy", tag: "" },
    ]);
  });

  test("get another tag, except for those that somebody deleted", async () => {
    const { api, selection, select, stored } = await openSelection([
      { name: "Fern", tag: "shade" },
      { name: "Ivy", tag: "wall" },
      { name: "Moss" },
      { name: "Rose" },
    ]);
    select("Fern", "Ivy", "Moss");
    await api.delete(3);

    await selection.changeTag("hall");

    expect(await stored()).toEqual([
      { name: "Fern", tag: "hall" },
      { name: "Ivy", tag: "hall" },
      { name: "Rose", tag: "" },
    ]);
    expect(nextUndoText()).toBe("2 plants have the tag “hall” now.");
  });

  test("get their old tags back, except for those that somebody has changed since", async () => {
    const { api, selection, select, stored } = await openSelection([
      { name: "Fern", tag: "shade" },
      { name: "Ivy", tag: "wall" },
    ]);
    select("Fern", "Ivy");
    await selection.changeTag("hall");
    await api.put(2, { name: "Ivy", tag: "porch" });

    await undo();

    expect(await stored()).toEqual([
      { name: "Fern", tag: "shade" },
      { name: "Ivy", tag: "porch" },
    ]);
    expect(shownNotice()).toBe("1 plant has its old tag again.");
  });
});
