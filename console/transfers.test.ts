/** Imports and exports, from a file to what the service has. */
import { expect, test } from "bun:test";
import { openState, toText, until } from "../test/open-state.ts";
import { message, nextUndo, notice, undo } from "./message.ts";
import { Transfers } from "./transfers.ts";

const { openGarden } = openState();

async function open(plants: readonly string[] = []) {
  const { garden, stored } = await openGarden(plants);
  const transfers = new Transfers(garden);
  const press = async (label: string) => {
    transfers.card.value?.actions.find((action) => action.label === label)?.run();
    await until(() => !transfers.isRunning.value);
  };
  const note = () => toText(transfers.card.value?.note);
  return { garden, transfers, press, note, stored };
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
