/**
 * LibreOffice as people use it: it opens a CSV file, some cells are edited, and it saves the sheet as
 * CSV again. The files in this folder, except exported.csv, were written like this.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

export const program = "soffice";

interface Options {
  /** Where its files go, its settings included. */
  readonly folder: string;
  readonly separator?: "," | ";";
  /** Of the person, who may write `1,5` for a number. */
  readonly locale?: "en-US" | "de-DE";
  /** The checkbox "Detect special numbers", which is off unless somebody checks it. */
  readonly detectsSpecialNumbers?: boolean;
  /** Cells to edit: the text of the first cell in their row, the column from 0 on, the new text. */
  readonly edits?: readonly (readonly [row: string, column: number, text: string])[];
}

/** Returns the path of the new file. */
export async function openAndSave(path: string, options: Options): Promise<string> {
  const { folder, separator = ",", locale = "en-US" } = options;
  const { detectsSpecialNumbers = false, edits = [] } = options;
  setLocale(folder, locale);
  const opening = `CSV:44,34,76,1,,0,false,${detectsSpecialNumbers}`;
  await convert(path, "fods", folder, `--infilter=${opening}`);
  const sheet = join(folder, basename(path).replace(/\.csv$/, ".fods"));
  let xml = readFileSync(sheet, "utf8");
  for (const edit of edits) xml = editCell(xml, ...edit);
  writeFileSync(sheet, xml);
  const saving = `Text - txt - csv (StarCalc):${separator.charCodeAt(0)},34,76,1,,0,false,true`;
  await convert(sheet, `csv:${saving}`, join(folder, "saved"));
  return join(folder, "saved", basename(path));
}

/** Settings of its own: only one LibreOffice may use a person's settings at a time. */
const settingsIn = (folder: string) => join(folder, "settings");

function setLocale(folder: string, locale: string): void {
  mkdirSync(join(settingsIn(folder), "user"), { recursive: true });
  writeFileSync(
    join(settingsIn(folder), "user/registrymodifications.xcu"),
    `<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Setup/L10N"><prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>${locale}</value></prop></item>
</oor:items>`,
  );
}

async function convert(path: string, format: string, folder: string, ...more: string[]) {
  const settings = `-env:UserInstallation=file://${settingsIn(folder)}`;
  const args = [settings, "--headless", ...more, "--convert-to", format, "--outdir", folder, path];
  const child = Bun.spawn([program, ...args], { stdout: "ignore", stderr: "pipe" });
  const errors = await new Response(child.stderr).text();
  if ((await child.exited) !== 0) throw new Error(errors);
}

const cell = /<table:table-cell(?:[^>]*\/>|.*?<\/table:table-cell>)/gs;

function editCell(xml: string, first: string, column: number, text: string): string {
  const row = new RegExp(
    `<table:table-row [^>]*>\\s*<table:table-cell [^>]*>\\s*<text:p>${first}</text:p>.*?</table:table-row>`,
    "s",
  );
  const typed = `<table:table-cell office:value-type="string"><text:p>${text}</text:p></table:table-cell>`;
  if (!row.test(xml)) throw new Error(`No row starts with ${first}.`);
  return xml.replace(row, (found) => {
    let at = 0;
    return found.replace(cell, (each) => (at++ === column ? typed : each));
  });
}
