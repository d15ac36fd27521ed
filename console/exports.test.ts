/** Exports: which plants are in the file, and what the page says about them. */
import { expect, test } from "bun:test";
import type { PlantDraft } from "../client/plant-store.ts";
import { openState } from "../test/open-state.ts";
import { toText } from "../testing/message-text.ts";
import { Exports } from "./exports.ts";
import { message, notice } from "./message.ts";

const { openGarden } = openState();

async function openExports(plants: readonly PlantDraft[]) {
  const opened = await openGarden(plants);
  const files: { name: string; text: string }[] = [];
  /** Takes the place of a download. */
  const saveFile = (file: Blob, name: string) =>
    void file.text().then((text) => files.push({ name, text }));
  return { ...opened, exports: new Exports(opened.garden), saveFile, files };
}

const shownNotice = () => toText(notice.value?.text);

test("an export has the plants that are shown", async () => {
  const { show, exports, saveFile, files } = await openExports([
    { name: "Fern", tag: "shade" },
    { name: "Ivy" },
  ]);
  await show({ tag: "" });

  await exports.export(saveFile);

  expect(shownNotice()).toBe("Exported 1 plant.");
  expect(files).toEqual([{ name: "untagged-plants.csv", text: "id,name,tag\r\n2,Ivy,\r\n" }]);
});

test("an export of selected plants has only those", async () => {
  const { garden, exports, saveFile, files } = await openExports([
    { name: "Fern", tag: "shade" },
    { name: "Ivy" },
  ]);
  const selected = garden.list.value.plants.slice(0, 1);

  await exports.export(saveFile, selected);

  expect(files).toEqual([{ name: "selected-plants.csv", text: "id,name,tag\r\n1,Fern,shade\r\n" }]);
});

test("an export with a formula has a warning that stays", async () => {
  const { exports, saveFile } = await openExports([{ name: "=F", tag: "shade" }]);

  await exports.export(saveFile);

  expect(shownNotice()).toMatch(/^Exported 1 plant\. 1 plant has a name or tag that starts with =/);
  expect(notice.value?.isTrouble).toBe(true);
});

test("a message isolates the names in it, and cuts those in quotes after 50 characters", () => {
  const name50 = "x".repeat(50);
  const name51 = "x".repeat(51);

  expect(message`“${name50}”`[1]).toMatchObject({ type: "bdi", props: { children: name50 } });
  expect(message`“${name51}”`[1]).toMatchObject({
    type: "bdi",
    props: { children: `${"x".repeat(49)}…` },
  });
  expect(message`by ${name51}`[1]).toMatchObject({ type: "bdi", props: { children: name51 } });
});

test("a message leaves parts that aren't names as they are", () => {
  expect(message`by ${[" too"]}`).toEqual(["by ", [" too"], "", undefined]);
  expect(toText(message`It has ${["no"]} tag.`)).toBe("It has no tag.");
});
