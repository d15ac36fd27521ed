/** Imports, from a file or pasted text to what the service has, and back. */
import { describe, expect, test } from "bun:test";
import type { PlantDraft } from "../client/plant-store.ts";
import { openState, url } from "../test/open-state.ts";
import { toText } from "../testing/message-text.ts";
import { Api } from "./api.ts";
import { Garden } from "./garden.ts";
import { describePlan, Imports } from "./imports.ts";
import { forgetUndo, nextUndo, notice, undo } from "./message.ts";

const { openGarden, makeGarden, fetch } = openState();

async function openImports(plants: readonly PlantDraft[] = []) {
  const opened = await openGarden(plants);
  return { ...opened, ...makeImports(opened.garden) };
}

function makeImports(garden: Garden) {
  const imports = new Imports(garden);
  return {
    imports,
    /** What the card says. */
    note() {
      const card = imports.card.value;
      return card && "note" in card ? toText(card.note) : undefined;
    },
    /** The label of the button that sends what the preview shows. Absent if there is nothing. */
    sendLabel() {
      const card = imports.card.value;
      return card?.kind === "preview" ? describePlan(card) : undefined;
    },
    pressStop() {
      const card = imports.card.value;
      if (card?.kind === "running") card.stop.press();
    },
  };
}

function csvFile(...lines: readonly string[]): File {
  return new File([lines.join("\n")], "plants.csv");
}

describe("a preview", () => {
  test("says what is new, what differs and what is here already, and sends nothing", async () => {
    const { imports, note, sendLabel, stored } = await openImports([
      { name: "Fern", tag: "shade" },
      { name: "Moss", tag: "wall" },
    ]);

    await imports.preview(csvFile("id,name,tag", "1,Fern,hall", "2,Moss,wall", ",Ivy,"));

    expect(note()).toBe(
      "3 rows: 1 new, 1 differs from what is here, 1 as it is. Nothing was sent yet.",
    );
    expect(sendLabel()).toBe("Add 1 plant");
    expect(await stored()).toEqual([
      { name: "Fern", tag: "shade" },
      { name: "Moss", tag: "wall" },
    ]);
  });

  test("of a file with an invalid row names the row, and can't be sent", async () => {
    const { imports, note, sendLabel, stored } = await openImports();

    await imports.preview(csvFile("name,tag", "Fern,", " ,"));

    expect(note()).toMatch(/^Nothing was sent: 1 of 2 rows is invalid\./);
    expect(imports.card.value).toMatchObject({ kind: "result", problems: [{ line: 3 }] });
    expect(sendLabel()).toBeUndefined();
    expect(await stored()).toEqual([]);
  });

  test("of a file without plants says so", async () => {
    const { imports, note } = await openImports();

    await imports.preview(csvFile("name,tag", ""));

    expect(note()).toBe("There are no plants in it.");
  });
});

describe("the card of an import", () => {
  test("gives way to the next one", async () => {
    const { imports } = await openImports();
    await imports.previewText("Ivy\nRose");
    await imports.send();

    imports.open();

    expect(imports.card.value).toEqual({ kind: "format" });
  });

  test("can't be closed while an import is running", async () => {
    const { imports, note } = await openImports();

    const checking = imports.previewText("Moss\nFern");
    expect(imports.close()).toBe(false);
    expect(imports.isRunning.value).toBe(true);
    await checking;

    expect(note()).toStartWith("2 rows: 2 new.");
    expect(imports.close()).toBe(true);
    expect(imports.card.value).toBeUndefined();
  });
});

describe("an import", () => {
  test("adds new plants and leaves the others as they are", async () => {
    const { imports, note, stored } = await openImports([{ name: "Fern", tag: "shade" }]);
    await imports.preview(csvFile("id,name,tag", "1,Fern,hall", ",Ivy,"));

    await imports.send();

    expect(note()).toMatch(/^Added 1 plant in .+ s\. 1 plant that differs stays as it is\.$/);
    expect(await stored()).toEqual([
      { name: "Fern", tag: "shade" },
      { name: "Ivy", tag: "" },
    ]);
  });

  test("changes plants that are here already only if the user chooses to", async () => {
    const { imports, note, sendLabel, stored } = await openImports([
      { name: "Fern", tag: "shade" },
      { name: "Ivy" },
    ]);
    await imports.preview(csvFile("id,name,tag", "1,Fern,hall", ",Ivy,"));
    expect(sendLabel()).toBeUndefined();

    imports.choose({ isChanging: true });
    expect(sendLabel()).toBe("Change 1 plant");
    await imports.send();

    expect(note()).toMatch(/^Changed 1 plant in .+ s\. 1 row is as it was\.$/);
    expect(await stored()).toEqual([
      { name: "Fern", tag: "hall" },
      { name: "Ivy", tag: "" },
    ]);
  });

  test("adds plants that are here already once more only if the user chooses to", async () => {
    const { imports, note, sendLabel, stored } = await openImports([
      { name: "Fern", tag: "shade" },
    ]);
    await imports.previewText("Fern\nFern");
    expect(note()).toBe("2 rows: 1 new, 1 as it is. Nothing was sent yet.");
    expect(sendLabel()).toBe("Add 1 plant");

    imports.choose({ isRepeating: true });
    expect(sendLabel()).toBe("Add 2 plants");
    await imports.send();

    expect(await stored()).toEqual([
      { name: "Fern", tag: "shade" },
      { name: "Fern", tag: "" },
      { name: "Fern", tag: "" },
    ]);
  });
});

describe("undoing an import", () => {
  test("takes back additions and changes, and the card says so", async () => {
    const { imports, note, stored } = await openImports([{ name: "Fern", tag: "shade" }]);
    await imports.preview(csvFile("id,name,tag", "1,Tree fern,hall", ",Ivy,"));
    imports.choose({ isChanging: true });
    await imports.send();
    expect(await stored()).toEqual([
      { name: "Tree fern", tag: "hall" },
      { name: "Ivy", tag: "" },
    ]);
    expect(toText(nextUndo.value?.text)).toBe("1 plant was added. 1 plant was changed.");

    await undo();

    expect(note()).toBe("The import was undone: 1 plant deleted, 1 plant changed back.");
    expect(await stored()).toEqual([{ name: "Fern", tag: "shade" }]);
    expect(nextUndo.value).toBeUndefined();
  });

  test("leaves alone what somebody has changed since", async () => {
    const { api, imports, note, stored } = await openImports([
      { name: "Fern", tag: "shade" },
      { name: "Moss", tag: "wall" },
    ]);
    const file = csvFile("id,name,tag", "1,Fern,hall", "2,Moss,hall", ",Ivy,", ",Rose,");
    await imports.preview(file);
    imports.choose({ isChanging: true });
    await imports.send();
    await api.update(2, { tag: "pond" });
    await api.update(3, { name: "English ivy" });

    await undo();

    expect(note()).toBe(
      "The import was undone: 1 plant deleted, 1 plant changed back. " +
        "2 plants that somebody has changed or deleted since were left alone.",
    );
    expect(await stored()).toEqual([
      { name: "Fern", tag: "shade" },
      { name: "Moss", tag: "pond" },
      { name: "English ivy", tag: "" },
    ]);
  });

  test("after its card was closed says at the foot of the page what it did", async () => {
    const { imports } = await openImports();
    await imports.previewText("Ivy\nRose");
    await imports.send();
    imports.close();

    await undo();

    expect(toText(notice.value?.text)).toBe("The import was undone: 2 plants deleted.");
  });
});

type Send = () => Promise<Response>;

/** 3,000 rows without ids, which go into three requests. */
const manyRows = Array.from({ length: 3_000 }, (_, index) => `Plant ${index} `.padEnd(200, "x"));

/**
 * Starts to import many plants. `intercept` gets each request before it is sent: with `send` it
 * sends it, and what it returns is the response.
 */
async function importMany(
  intercept: (path: string, send: Send, signal: AbortSignal) => Promise<Response>,
) {
  forgetUndo();
  const token = await makeGarden([]);
  const api = new Api({
    url,
    token,
    fetch: (target, init) =>
      intercept(new URL(target).pathname, () => fetch(target, init), init.signal as AbortSignal),
  });
  const countStored = async () => (await new Api({ url, token, fetch }).me()).plants;
  const opened = makeImports(new Garden(api));
  await opened.imports.preview(csvFile("name", ...manyRows));
  const importing = opened.imports.send();
  return { ...opened, importing, countStored };
}

/** The same, with a second request that waits. Returns once that has begun. */
async function importManyUntilSecondRequest() {
  const isBegun = Promise.withResolvers<void>();
  const isReleased = Promise.withResolvers<void>();
  let bulks = 0;
  const opened = await importMany(async (path, send) => {
    if (path === "/plants/bulk" && ++bulks === 2) {
      isBegun.resolve();
      await isReleased.promise;
    }
    return send();
  });
  await isBegun.promise;
  return { ...opened, releaseSecondRequest: isReleased.resolve };
}

/** A response that never comes, until the request is aborted. */
function neverRespond(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

/** A click within a second counts as a double click, which doesn't stop at once. */
function waitOutDoubleClick(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1_100));
}

describe("a stopped import", () => {
  test("waits for the request under way, and its undo deletes all that it added", async () => {
    const { importing, pressStop, releaseSecondRequest, note, countStored } =
      await importManyUntilSecondRequest();

    pressStop();
    expect(note()).toBe("Stopping…");
    releaseSecondRequest();
    await importing;
    const added = (await countStored()).toLocaleString("en");
    expect(note()).toStartWith(`Stopped. Added ${added} plants in `);

    await undo();
    expect(note()).toBe(`The import was undone: ${added} plants deleted.`);
    expect(await countStored()).toBe(0);
  });

  test("goes on when the file is imported again, and adds no plant twice", async () => {
    const { imports, importing, pressStop, releaseSecondRequest, note, countStored } =
      await importManyUntilSecondRequest();
    pressStop();
    releaseSecondRequest();
    await importing;
    expect(note()).toEndWith("Import it again to go on: no plant is added twice.");
    const left = 3_000 - (await countStored());

    await imports.preview(csvFile("name", ...manyRows));
    await imports.send();

    expect(note()).toStartWith(`Added ${left.toLocaleString("en")} plants in `);
    expect(await countStored()).toBe(3_000);
  });

  test("that didn't wait names both bounds, and its undo finds out first", async () => {
    const isSecondStored = Promise.withResolvers<void>();
    let bulks = 0;
    const { importing, pressStop, note, countStored } = await importMany(
      async (path, send, signal) => {
        const response = await send();
        if (path !== "/plants/bulk" || ++bulks !== 2) return response;
        isSecondStored.resolve();
        return neverRespond(signal);
      },
    );
    await isSecondStored.promise;

    pressStop();
    // The second click of a double click.
    pressStop();
    await waitOutDoubleClick();
    expect(note()).toBe("Stopping…");
    pressStop();
    await importing;

    const stored = await countStored();
    const [, least = "", most = ""] =
      /^Stopped\. Added at least (\S+), at most (\S+) plants/.exec(note() ?? "") ?? [];
    expect(most).toBe(stored.toLocaleString("en"));
    expect(Number(least.replace(",", ""))).toBeWithin(1, stored);
    expect(note()).toEndWith("Import it again to go on.");

    await undo();
    expect(note()).toBe(`The import was undone: ${most} plants deleted.`);
    expect(await countStored()).toBe(0);
  });

  test("changes plants back although the response to the change was lost", async () => {
    forgetUndo();
    const token = await makeGarden([{ name: "Fern", tag: "shade" }]);
    const isChanged = Promise.withResolvers<void>();
    let isLost = true;
    const api = new Api({
      url,
      token,
      async fetch(target, init) {
        const response = await fetch(target, init);
        if (init.method !== "PATCH" || !isLost) return response;
        isChanged.resolve();
        return neverRespond(init.signal as AbortSignal);
      },
    });
    const { imports, note, pressStop } = makeImports(new Garden(api));
    await imports.preview(csvFile("id,tag", "1,hall"));
    imports.choose({ isChanging: true });
    const importing = imports.send();
    await isChanged.promise;
    pressStop();
    await waitOutDoubleClick();
    pressStop();
    await importing;
    expect(note()).toStartWith("Stopped. Changed at least 0, at most 1 plant in ");
    isLost = false;
    expect((await api.get(1)).tag).toBe("hall");

    await undo();

    expect(note()).toBe("The import was undone: 1 plant changed back.");
    expect((await api.get(1)).tag).toBe("shade");
  });
});

test("undoing an import again after a lost response counts all that was deleted", async () => {
  let isAway = true;
  const { importing, note, countStored } = await importMany(async (path, send) => {
    const response = await send();
    if (path === "/plants/bulk-delete" && isAway) throw new Error("lost");
    return response;
  });
  await importing;

  await undo();
  expect(toText(notice.value?.text)).toStartWith("It may not have been undone.");
  expect(await countStored()).toBe(0);

  isAway = false;
  await undo();
  expect(note()).toBe("The import was undone: 3,000 plants deleted.");
});
