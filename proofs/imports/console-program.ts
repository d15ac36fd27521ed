/**
 * The console without its page, as a program. It takes lines: `import FILE`, `stop` and `undo`. What
 * an import or an undo said comes back as a line, too, and whether there is something to undo.
 */
import { Api } from "../../console/api.ts";
import { Garden } from "../../console/garden.ts";
import { forgetUndo, nextUndo, notice, undo } from "../../console/message.ts";
import { Transfers } from "../../console/transfers.ts";
import { toText, until } from "../../test/open-state.ts";

const { PLANTSTORE_URL: url = "", PLANTSTORE_TOKEN: token = "" } = process.env;
const transfers = new Transfers(new Garden(new Api({ url, token })));

function press(label: string): void {
  transfers.card.value?.actions.find((action) => action.label.startsWith(label))?.run();
}

function reply(text: string): void {
  process.stdout.write(`${JSON.stringify({ text, canUndo: nextUndo.value !== undefined })}\n`);
}

async function importFile(path: string): Promise<void> {
  forgetUndo();
  await transfers.preview(new File([Bun.file(path)], "plants.csv"));
  press("Add");
  await until(() => !transfers.isRunning.value);
  reply(toText(transfers.card.value?.note));
}

for await (const line of console) {
  const [command, path = ""] = line.split(" ");
  if (command === "import") void importFile(path);
  else if (command === "stop") press("Stop");
  else void undo().then(() => reply(toText(notice.value?.text)));
}
