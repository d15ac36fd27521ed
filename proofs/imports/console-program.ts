/**
 * The console without its page, as a program. It takes lines: `import FILE`, `stop` and `undo`. What
 * an import or an undo said comes back as a line, too, and whether there is something to undo.
 */
import { Api } from "../../console/api.ts";
import { Garden } from "../../console/garden.ts";
import { Imports } from "../../console/imports.ts";
import { forgetUndo, nextUndo, notice, undo } from "../../console/message.ts";
import { toText } from "../../testing/message-text.ts";

const { PLANTSTORE_URL: url = "", PLANTSTORE_TOKEN: token = "" } = process.env;
const imports = new Imports(new Garden(new Api({ url, token })));

function stop(): void {
  const card = imports.card.value;
  if (card?.kind === "running") card.stop.press();
}

function reply(text: string): void {
  process.stdout.write(`${JSON.stringify({ text, canUndo: nextUndo.value !== undefined })}\n`);
}

async function importFile(path: string): Promise<void> {
  forgetUndo();
  await imports.preview(new File([Bun.file(path)], "plants.csv"));
  await imports.send();
  const card = imports.card.value;
  reply(card?.kind === "result" ? toText(card.note) : "");
}

/** What it did is in the card of the import. */
async function undoImport(): Promise<void> {
  await undo();
  const card = imports.card.value;
  const isInCard = card?.kind === "result" && nextUndo.value === undefined;
  reply(toText(isInCard ? card.note : notice.value?.text));
}

for await (const line of console) {
  const [command, path = ""] = line.split(" ");
  if (command === "import") void importFile(path);
  else if (command === "stop") stop();
  else void undoImport();
}
