/** A list goes to LibreOffice and back, with cells edited and without. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { openGarden, serveHere } from "../../testing/running-service.ts";
import { skipsWithout } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { openAndSave, program } from "../spreadsheets/libre-office.ts";

setDefaultTimeout(120_000);

const isSkipped = skipsWithout(program);
const folder = makeTemporaryFolder();
const service = await serveHere();

afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** The separator is what LibreOffice writes. */
const english = { separator: ",", locale: "en-US" } as const;
const german = { separator: ";", locale: "de-DE", detectsSpecialNumbers: true } as const;

/** A garden of 24 plants, and the file that it was exported to. */
async function exportGarden(user: string) {
  const { run } = await openGarden(service, { user });
  await run(["import", join(import.meta.dir, "../spreadsheets/exported.csv")]);
  const ownFolder = mkdtempSync(join(folder.path, "sheet-"));
  const exported = join(ownFolder, "plants.csv");
  await run(["export", exported]);
  return { run, exported, ownFolder };
}

describe.skipIf(isSkipped).each([
  { language: "English", options: english },
  { language: "German", options: german },
])("a list that LibreOffice has saved in $language", ({ language, options }) => {
  test("changes nothing if no cell was edited", async () => {
    const { run, exported, ownFolder } = await exportGarden(`${language}-unedited`);
    const saved = await openAndSave(exported, { folder: ownFolder, ...options });

    const { exitCode, out } = await run(["import", saved, "--update"]);

    expect(exitCode).toBe(0);
    expect(out).toBe('{"stored":0,"changed":0,"unchanged":24,"refused":0}\n');
  });

  test("changes the three plants whose cells were edited, once", async () => {
    const { run, exported, ownFolder } = await exportGarden(`${language}-edited`);
    const [name, tag] = [1, 2];
    const saved = await openAndSave(exported, {
      folder: ownFolder,
      ...options,
      edits: [
        ["2", name, "Tree moss"],
        ["3", tag, "hall"],
        ["15", tag, "8"],
      ],
    });

    const updated = await run(["import", saved, "--update", "--yes"]);
    expect(updated.exitCode).toBe(0);
    expect(updated.out).toBe('{"stored":0,"changed":3,"unchanged":21,"refused":0}\n');
    expect((await run("plants get 2 3 15")).out).toBe(
      '{"id":2,"name":"Tree moss","tag":"shade"}\n' +
        '{"id":3,"name":"Rose","tag":"hall"}\n' +
        '{"id":15,"name":"Ivy 1","tag":"8"}\n',
    );

    const again = await run(["import", saved, "--update"]);
    expect(again.exitCode).toBe(0);
    expect(again.out).toBe('{"stored":0,"changed":0,"unchanged":24,"refused":0}\n');
  });
});
