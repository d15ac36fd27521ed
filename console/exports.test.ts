/** Exports: which plants are in the file, and what the page says of them. */
import { expect, test } from "bun:test";
import { openState, until } from "../test/open-state.ts";
import { toText } from "../testing/message-text.ts";
import { Exports } from "./exports.ts";
import { message, notice } from "./message.ts";

const { openGarden } = openState();

async function open(plants: readonly string[]) {
  const { garden } = await openGarden(plants);
  const files: [name: string, text: string][] = [];
  const exports = new Exports(garden);
  const download = (file: Blob, name: string) =>
    void file.text().then((text) => files.push([name, text]));
  const said = () => toText(notice.value?.text);
  return { garden, exports, download, files, said };
}

test("an export has the plants that are shown", async () => {
  const { garden, exports, download, files, said } = await open(["Fern:shade", "Ivy"]);
  garden.show({ tag: "" });
  await until(() => !garden.isComing.value);
  await exports.export(download);
  expect(said()).toBe("Exported 1 plant.");
  expect(files).toEqual([["untagged-plants.csv", "id,name,tag\r\n2,Ivy,\r\n"]]);
});

test("an export has the plants that are selected, if any", async () => {
  const { garden, exports, download, files } = await open(["Fern:shade", "Ivy"]);
  await exports.export(download, garden.list.value.plants.slice(0, 1));
  expect(files).toEqual([["selected-plants.csv", "id,name,tag\r\n1,Fern,shade\r\n"]]);
});

test("an export warns of formulas, until somebody has read it", async () => {
  const { exports, download, said } = await open(["=F:shade"]);
  await exports.export(download);
  expect(said()).toMatch(/^Exported 1 plant\. 1 plant has a name or tag that starts with =/);
  expect(notice.value?.isTrouble).toBe(true);
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
