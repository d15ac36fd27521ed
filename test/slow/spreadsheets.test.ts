/** A list goes to LibreOffice and back, with cells edited and without. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { openGarden, serveHere } from "../../testing/running-service.ts";
import { skipsWithout } from "../../testing/skipping.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { openAndSave, program } from "../spreadsheets/libre-office.ts";

setDefaultTimeout(120_000);

const folder = makeTemporaryFolder();
const service = await serveHere();
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});
const recorded = join(import.meta.dir, "../spreadsheets/exported.csv");
const counts = (changed: number, unchanged: number) => ({
  exitCode: 0,
  out: `${JSON.stringify({ stored: 0, changed, unchanged, refused: 0 })}\n`,
});

test.skipIf(skipsWithout(program)).each([
  ["in English", {}],
  ["in German", { separator: ";", locale: "de-DE", detectsSpecialNumbers: true }],
] as const)(
  "a list comes back from LibreOffice %s: nothing edited changes nothing, three cells three plants",
  async (user, options) => {
    const { run } = await openGarden(service, { user });
    await run(["import", recorded]);
    const exported = join(mkdtempSync(join(folder.path, "sheet-")), "plants.csv");
    await run(["export", exported]);
    const own = { folder: join(exported, ".."), ...options };
    const unedited = await openAndSave(exported, own);
    expect(await run(["import", unedited, "--update"])).toMatchObject(counts(0, 24));
    const edits = [
      ["2", 1, "Tree moss"],
      ["3", 2, "hall"],
      ["15", 2, "8"],
    ] as const;
    const edited = await openAndSave(exported, { ...own, edits });
    expect(await run(["import", edited, "--update", "--yes"])).toMatchObject(counts(3, 21));
    expect((await run("plants get 2 3 15")).out).toBe(
      '{"id":2,"name":"Tree moss","tag":"shade"}\n{"id":3,"name":"Rose","tag":"hall"}\n' +
        '{"id":15,"name":"Ivy 1","tag":"8"}\n',
    );
    expect(await run(["import", edited, "--update"])).toMatchObject(counts(0, 24));
  },
);
