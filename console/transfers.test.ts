/** Imports and exports, from a file to what the service has. */
import { expect, test } from "bun:test";
import { openState, toText, until, url } from "../test/open-state.ts";
import { Api } from "./api.ts";
import { Garden } from "./garden.ts";
import { forgetUndo, message, nextUndo, notice, undo } from "./message.ts";
import { Transfers } from "./transfers.ts";

const { openGarden, makeGarden, fetch } = openState();

async function open(plants: readonly string[] = []) {
  const { garden, stored } = await openGarden(plants);
  return { ...openTransfers(garden), stored };
}

function openTransfers(garden: Garden) {
  const transfers = new Transfers(garden);
  const press = async (label: string) => {
    transfers.card.value?.actions.find((action) => action.label === label)?.run();
    await until(() => !transfers.isRunning.value);
  };
  const note = () => toText(transfers.card.value?.note);
  return { garden, transfers, press, note };
}

/** Rows without ids, which go into three requests. */
const manyRows = Array.from({ length: 3_000 }, (_, index) => `Plant ${index} `.padEnd(200, "x"));
const manyPlants = new File([["name", ...manyRows].join("\n")], "many.csv");

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
  const opened = openTransfers(new Garden(api));
  await opened.transfers.preview(manyPlants);
  const importing = opened.press("Add 3,000 plants");
  const press = (label: string) =>
    opened.transfers.card.value?.actions.find((action) => action.label === label)?.run();
  return { ...opened, importing, press, count };
}

test("an import sends nothing before it is told to, and can be undone and done again", async () => {
  const { transfers, press, note, stored } = await open(["Acer"]);
  const file = new File(["id,name\n1,Acer\n,Fern\n9,Ivy\n"], "plants.csv");
  await transfers.preview(file);
  expect(toText(transfers.card.value?.title)).toBe("Import “plants.csv”");
  expect(note()).toBe(
    "3 rows, all valid. The file starts with “Acer”, with the id 1. Nothing was sent yet.",
  );
  expect(await stored()).toEqual(["Acer:"]);
  await press("Add 3 plants");
  expect(note()).toMatch(/^Added 2 plants in .+ s\. 1 was already there\.$/);
  expect(toText(nextUndo.value?.text)).toBe("2 plants were imported from “plants.csv”.");
  await undo();
  expect(toText(notice.value?.text)).toBe("The import was undone: 2 plants deleted.");
  expect(await stored()).toEqual(["Acer:"]);
  await transfers.preview(file);
  await press("Add 3 plants");
  expect(await stored()).toEqual(["Acer:", "Ivy:", "Fern:"]);
});

test("a stopped import waits for the request under way, and its undo deletes all that it added", async () => {
  const second = Promise.withResolvers<void>();
  const isStopped = Promise.withResolvers<void>();
  let bulks = 0;
  const { transfers, importing, press, note, count } = await importMany(async (path, send) => {
    if (path !== "/plants/bulk" || ++bulks !== 2) return send();
    second.resolve();
    await isStopped.promise;
    return send();
  });
  await second.promise;
  press("Stop");
  expect(note()).toBe("Stopping…");
  expect(transfers.card.value?.actions.map(({ label }) => label)).toEqual(["Stop now"]);
  isStopped.resolve();
  await importing;
  const added = (await count()).toLocaleString("en");
  expect(note()).toStartWith(`Stopped. Added ${added} plants in `);
  expect(toText(nextUndo.value?.text)).toBe(`${added} plants were imported from “many.csv”.`);
  await undo();
  expect(toText(notice.value?.text)).toBe(`The import was undone: ${added} plants deleted.`);
  expect(await count()).toBe(0);
});

test("an import whose outcome is unknown names both bounds, and its undo finds out first", async () => {
  const second = Promise.withResolvers<void>();
  let bulks = 0;
  const { importing, press, note, count } = await importMany(async (path, send, signal) => {
    const response = await send();
    if (path !== "/plants/bulk" || ++bulks !== 2) return response;
    second.resolve();
    return new Promise((_, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason)),
    );
  });
  await second.promise;
  press("Stop");
  // A double click isn't a second wish.
  press("Stop now");
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  press("Stop now");
  await importing;
  const stored = await count();
  const [, least = "", most = ""] =
    /^Stopped\. Added at least (\S+), at most (\S+) plants/.exec(note()) ?? [];
  expect(most).toBe(stored.toLocaleString("en"));
  expect(Number(least.replace(",", ""))).toBeWithin(1, stored);
  const offer = `At least ${least}, at most ${most} plants were imported from “many.csv”.`;
  expect(toText(nextUndo.value?.text)).toBe(offer);
  await undo();
  expect(toText(notice.value?.text)).toBe(`The import was undone: ${most} plants deleted.`);
  expect(await count()).toBe(0);
});

test("an undo that had to be repeated counts all that it deleted", async () => {
  let isAway = true;
  const { importing, count } = await importMany(async (path, send) => {
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
  expect(toText(notice.value?.text)).toBe("The import was undone: 3,000 plants deleted.");
});

test("an import of a file with an invalid row adds nothing, and names the row", async () => {
  const { transfers, note, stored } = await open();
  await transfers.preview(new File(["name,tag\nFern,\n ,\n"], "plants.csv"));
  expect(note()).toMatch(/^Nothing was sent: 1 of 2 rows is invalid\./);
  expect(transfers.card.value?.problems).toMatchObject([{ line: 3 }]);
  expect(transfers.card.value?.actions.map(({ label }) => label)).toEqual(["Close"]);
  await transfers.preview(new File(["name,tag\n"], "plants.csv"));
  expect([note(), await stored()]).toEqual(["The file has no plants.", []]);
});

test("an export has the plants that are shown, and warns of formulas", async () => {
  const { garden, transfers, note } = await open(["=F:shade", "Ivy"]);
  const files: [name: string, text: Promise<string>][] = [];
  const download = (file: Blob, name: string) => files.push([name, file.text()]);
  await transfers.export(download);
  expect(note()).toMatch(/^Exported 2 plants\. 1 plant has a name or tag that starts with =/);
  garden.show({ tag: "" });
  await until(() => !garden.isComing.value);
  await transfers.export(download);
  expect(note()).toBe("Exported 1 plant.");
  expect(await Promise.all(files.map((file) => Promise.all(file)))).toEqual([
    ["plants.csv", "id,name,tag\r\n1,=F,shade\r\n2,Ivy,\r\n"],
    ["untagged-plants.csv", "id,name,tag\r\n2,Ivy,\r\n"],
  ]);
});

test("a message isolates names and cuts the ones in quotes", () => {
  const long = "x".repeat(60);
  const [, quoted, , name] = message`“${long}” and ${long}${[" too"]}`;
  expect([quoted, name]).toMatchObject([
    { type: "bdi", props: { children: `${"x".repeat(49)}…` } },
    { type: "bdi", props: { children: long } },
  ]);
  expect(toText(message`It has ${["no"]} tag.`)).toBe("It has no tag.");
});
