/** Imports and exports, from a file to what the service has. */
import { expect, test } from "bun:test";
import { openState, until, url } from "../test/open-state.ts";
import { Api } from "./api.ts";
import { message, toText } from "./message.ts";
import { Transfers } from "./transfers.ts";

const { fetch, makeGarden } = openState();

async function open(names: readonly string[] = []) {
  const api = new Api({ url, token: await makeGarden(names), fetch });
  const downloads: { name: string; text: Promise<string> }[] = [];
  let changes = 0;
  const transfers = new Transfers(api, {
    query: () => ({}),
    onChanged: () => changes++,
    chooseFile: () => {},
    download: (file, name) => downloads.push({ name, text: file.text() }),
  });
  const end = () => until(() => transfers.card.value !== undefined && !transfers.isRunning.value);
  const press = async (label: string) => {
    transfers.card.value?.actions.find((action) => action.label === label)?.run();
    await end();
  };
  const note = () => transfers.card.value?.note;
  const stored = async () => (await api.page()).plants.map(({ name }) => name);
  return { transfers, downloads, end, press, note, stored, countChanges: () => changes };
}

test("an import sends nothing before it is told to, and can be undone and done again", async () => {
  const { transfers, press, note, stored, countChanges } = await open(["Acer"]);
  const file = new File(["id,name\n1,Acer\n,Fern\n9,Ivy\n"], "plants.csv");
  await transfers.preview(file);
  expect(toText(transfers.card.value?.title ?? [])).toBe("Import “plants.csv”");
  expect(note()).toBe("3 rows, all valid. Nothing was sent yet.");
  expect(await stored()).toEqual(["Acer"]);
  await press("Add 3 plants");
  expect(note()).toMatch(/^Added 2 plants in .+ s\. 1 was already there\.$/);
  await press("Undo: delete these 2 plants");
  expect(note()).toBe("The import was undone: 2 plants deleted.");
  expect([await stored(), countChanges()]).toEqual([["Acer"], 2]);
  await transfers.preview(file);
  await press("Add 3 plants");
  expect(await stored()).toEqual(["Acer", "Ivy", "Fern"]);
});

test("an import of a file with an invalid row adds nothing, and names the row", async () => {
  const { transfers, note, stored } = await open();
  await transfers.preview(new File(["name,tag\nFern,\n ,\n"], "plants.csv"));
  expect(note()).toMatch(/^Nothing was sent: 1 of 2 rows is invalid\./);
  expect(transfers.card.value?.problems).toMatchObject([{ line: 3 }]);
  expect(transfers.card.value?.actions.map(({ label }) => label)).toEqual([
    "Choose the file again",
    "Cancel",
  ]);
  await transfers.preview(new File(["name,tag\n"], "plants.csv"));
  expect([note(), await stored()]).toEqual(["The file has no plants.", []]);
});

test("an export has every plant", async () => {
  const { transfers, downloads, note } = await open(["Fern:shade", "Ivy"]);
  await transfers.export();
  expect(note()).toBe("Exported 2 plants.");
  expect(downloads[0]?.name).toBe("plants.csv");
  expect(await downloads[0]?.text).toBe("id,name,tag\r\n1,Fern,shade\r\n2,Ivy,\r\n");
});

test("a message isolates names and cuts the ones in quotes", () => {
  const long = "x".repeat(60);
  expect(message`“${long}” and ${long}${[" too"]}`).toEqual([
    "“",
    { name: `${"x".repeat(49)}…` },
    "” and ",
    { name: long },
    "",
    " too",
    "",
  ]);
  expect(toText(message`It has the id ${{ plant: 7n }}.`)).toBe("It has the id 7.");
});
