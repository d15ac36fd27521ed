/** Imports, from a file or pasted text to what the service has, and back. */
import { expect, test } from "bun:test";
import { openState, url } from "../test/open-state.ts";
import { toText } from "../testing/message-text.ts";
import { Api } from "./api.ts";
import { Garden } from "./garden.ts";
import { describePlan, Imports } from "./imports.ts";
import { forgetUndo, nextUndo, notice, undo } from "./message.ts";

const { openGarden, makeGarden, fetch } = openState();

async function open(plants: readonly string[] = []) {
  const opened = await openGarden(plants);
  return { ...opened, ...openImports(opened.garden) };
}

function openImports(garden: Garden) {
  const imports = new Imports(garden);
  /** What the card says. */
  const said = () => {
    const card = imports.card.value;
    return card && "note" in card ? toText(card.note) : undefined;
  };
  const button = () => {
    const card = imports.card.value;
    return card?.kind === "preview" ? describePlan(card) : undefined;
  };
  const stop = () => {
    const card = imports.card.value;
    if (card?.kind === "running") card.stop.press();
  };
  return { garden, imports, said, button, stop };
}

const csv = (...lines: readonly string[]) => new File([lines.join("\n")], "plants.csv");

test("a preview says what is new, what differs and what is here already, and sends nothing", async () => {
  const { imports, said, button, stored } = await open(["Fern:shade", "Moss:wall"]);
  await imports.preview(csv("id,name,tag", "1,Fern,hall", "2,Moss,wall", ",Ivy,"));
  expect(said()).toBe(
    "3 rows: 1 new, 1 differs from what is here, 1 as it is. Nothing was sent yet.",
  );
  expect(button()).toBe("Add 1 plant");
  expect(await stored()).toEqual(["Fern:shade", "Moss:wall"]);
});

test("plants that are here already are changed only if somebody says so", async () => {
  const { imports, said, button, stored } = await open(["Fern:shade"]);
  const file = csv("id,name,tag", "1,Fern,hall", ",Ivy,");
  await imports.preview(file);
  await imports.send();
  expect(said()).toMatch(/^Added 1 plant in .+ s\. 1 plant that differs stays as it is\.$/);
  expect(await stored()).toEqual(["Fern:shade", "Ivy:"]);
  await imports.preview(file);
  expect(button()).toBeUndefined();
  imports.choose({ isChanging: true });
  expect(button()).toBe("Change 1 plant");
  await imports.send();
  expect(said()).toMatch(/^Changed 1 plant in .+ s\. 1 row is as it was\.$/);
  expect(await stored()).toEqual(["Fern:hall", "Ivy:"]);
});

test("rows that are plants here already can be added once more", async () => {
  const { imports, said, button, stored } = await open(["Fern:shade"]);
  await imports.previewText("Fern\nFern");
  expect([said(), button()]).toEqual([
    "2 rows: 1 new, 1 as it is. Nothing was sent yet.",
    "Add 1 plant",
  ]);
  imports.choose({ isRepeating: true });
  expect(button()).toBe("Add 2 plants");
  await imports.send();
  expect(await stored()).toEqual(["Fern:shade", "Fern:", "Fern:"]);
});

test("an undo takes back additions and changes, and its result replaces that of the import", async () => {
  const { imports, said, stored } = await open(["Fern:shade"]);
  await imports.preview(csv("id,name,tag", "1,Tree fern,hall", ",Ivy,"));
  imports.choose({ isChanging: true });
  await imports.send();
  expect(await stored()).toEqual(["Tree fern:hall", "Ivy:"]);
  expect(toText(nextUndo.value?.text)).toBe("1 plant was added. 1 plant was changed.");
  await undo();
  expect(said()).toBe("The import was undone: 1 plant deleted, 1 plant changed back.");
  expect(await stored()).toEqual(["Fern:shade"]);
  expect(nextUndo.value).toBeUndefined();
});

test("an undo leaves alone what somebody has changed since", async () => {
  const { api, imports, said, stored } = await open(["Fern:shade", "Moss:wall"]);
  const rows = ["1,Fern,hall", "2,Moss,hall", ",Ivy,", ",Rose,"];
  await imports.preview(csv("id,name,tag", ...rows));
  imports.choose({ isChanging: true });
  await imports.send();
  await api.update(2, { tag: "pond" });
  await api.update(3, { name: "English ivy" });
  await undo();
  expect(said()).toBe(
    "The import was undone: 1 plant deleted, 1 plant changed back. " +
      "2 plants that somebody has changed since stay as they are.",
  );
  expect(await stored()).toEqual(["Fern:shade", "Moss:pond", "English ivy:"]);
});

test("an undo after the card was closed says at the foot of the page what it did", async () => {
  const { imports } = await open();
  await imports.previewText("Ivy\nRose");
  await imports.send();
  imports.close();
  await undo();
  expect(toText(notice.value?.text)).toBe("The import was undone: 2 plants deleted.");
});

test("a card gives way to the next one, and closes unless an import is running", async () => {
  const { imports, said } = await open();
  await imports.previewText("Ivy\nRose");
  await imports.send();
  imports.open();
  expect(imports.card.value).toEqual({ kind: "format" });
  const checking = imports.previewText("Moss\nFern");
  expect([imports.close(), imports.isRunning.value]).toEqual([false, true]);
  await checking;
  expect(said()).toStartWith("2 rows: 2 new.");
  expect([imports.close(), imports.card.value]).toEqual([true, undefined]);
});

test("a file with an invalid row adds nothing, and names the row", async () => {
  const { imports, said, stored } = await open();
  await imports.preview(csv("name,tag", "Fern,", " ,"));
  expect(said()).toMatch(/^Nothing was sent: 1 of 2 rows is invalid\./);
  expect(imports.card.value).toMatchObject({ kind: "result", problems: [{ line: 3 }] });
  expect(await stored()).toEqual([]);
});

test("a file without plants says so", async () => {
  const { imports, said } = await open();
  await imports.preview(csv("name,tag", ""));
  expect(said()).toBe("There are no plants in it.");
});

/** Rows without ids, which go into three requests. */
const manyRows = Array.from({ length: 3_000 }, (_, index) => `Plant ${index} `.padEnd(200, "x"));

/** Imports many plants, until `meet` does something else with a request than to send it. */
async function importMany(
  meet: (path: string, send: () => Promise<Response>, signal: AbortSignal) => Promise<Response>,
) {
  forgetUndo();
  const token = await makeGarden([]);
  const api = new Api({
    url,
    token,
    fetch: (target, init) =>
      meet(new URL(target).pathname, () => fetch(target, init), init.signal as AbortSignal),
  });
  const count = async () => (await new Api({ url, token, fetch }).me()).plants;
  const opened = openImports(new Garden(api));
  await opened.imports.preview(csv("name", ...manyRows));
  const importing = opened.imports.send();
  return { ...opened, importing, count };
}

test("a stopped import waits for the request under way, and its undo deletes all that it added", async () => {
  const second = Promise.withResolvers<void>();
  const isStopped = Promise.withResolvers<void>();
  let bulks = 0;
  const { importing, stop, said, count } = await importMany(async (path, send) => {
    if (path !== "/plants/bulk" || ++bulks !== 2) return send();
    second.resolve();
    await isStopped.promise;
    return send();
  });
  await second.promise;
  stop();
  expect(said()).toBe("Stopping…");
  isStopped.resolve();
  await importing;
  const added = (await count()).toLocaleString("en");
  expect(said()).toStartWith(`Stopped. Added ${added} plants in `);
  await undo();
  expect(said()).toBe(`The import was undone: ${added} plants deleted.`);
  expect(await count()).toBe(0);
});

test("a stopped import goes on when the file is imported again, and adds no plant twice", async () => {
  let bulks = 0;
  const isStopped = Promise.withResolvers<void>();
  const second = Promise.withResolvers<void>();
  const { imports, importing, stop, said, count } = await importMany(async (path, send) => {
    if (path !== "/plants/bulk" || ++bulks !== 2) return send();
    second.resolve();
    await isStopped.promise;
    return send();
  });
  await second.promise;
  stop();
  isStopped.resolve();
  await importing;
  const left = 3_000 - (await count());
  expect(said()).toEndWith("Import it again to add the rest: no plant is added twice.");
  await imports.preview(csv("name", ...manyRows));
  await imports.send();
  expect(said()).toStartWith(`Added ${left.toLocaleString("en")} plants in `);
  expect(await count()).toBe(3_000);
});

test("an import whose outcome is unknown names both bounds, and its undo finds out first", async () => {
  const second = Promise.withResolvers<void>();
  let bulks = 0;
  const { importing, stop, said, count } = await importMany(async (path, send, signal) => {
    const response = await send();
    if (path !== "/plants/bulk" || ++bulks !== 2) return response;
    second.resolve();
    return new Promise((_, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason)),
    );
  });
  await second.promise;
  stop();
  // A double click isn't a second wish.
  stop();
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  stop();
  await importing;
  const stored = await count();
  const [, least = "", most = ""] =
    /^Stopped\. Added at least (\S+), at most (\S+) plants/.exec(said() ?? "") ?? [];
  expect(most).toBe(stored.toLocaleString("en"));
  expect(Number(least.replace(",", ""))).toBeWithin(1, stored);
  await undo();
  expect(said()).toBe(`The import was undone: ${most} plants deleted.`);
  expect(await count()).toBe(0);
});

test("an undo that had to be repeated counts all that it deleted", async () => {
  let isAway = true;
  const { importing, said, count } = await importMany(async (path, send) => {
    const response = await send();
    if (path === "/plants/bulk-delete" && isAway) throw new Error("lost");
    return response;
  });
  await importing;
  await undo();
  expect(toText(notice.value?.text)).toStartWith("It may not have been undone.");
  expect(await count()).toBe(0);
  isAway = false;
  await undo();
  expect(said()).toBe("The import was undone: 3,000 plants deleted.");
});

test("a change whose response was lost is changed back, too", async () => {
  forgetUndo();
  const token = await makeGarden(["Fern:shade"]);
  const isOver = Promise.withResolvers<void>();
  const api = new Api({
    url,
    token,
    async fetch(target, init) {
      const response = await fetch(target, init);
      if (init.method !== "PATCH" || isLost === false) return response;
      isOver.resolve();
      return new Promise((_, reject) => {
        init.signal?.addEventListener("abort", () => reject(init.signal?.reason));
      });
    },
  });
  let isLost = true;
  const { imports, said, stop } = openImports(new Garden(api));
  await imports.preview(csv("id,tag", "1,hall"));
  imports.choose({ isChanging: true });
  const importing = imports.send();
  await isOver.promise;
  stop();
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  stop();
  await importing;
  expect(said()).toStartWith("Stopped. Changed at least 0, at most 1 plant in ");
  isLost = false;
  expect((await api.get(1)).tag).toBe("hall");
  await undo();
  expect(said()).toBe("The import was undone: 1 plant changed back.");
  expect((await api.get(1)).tag).toBe("shade");
});
