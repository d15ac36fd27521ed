/** `plantstore garden list|delete`: the gardens in a store, even while a service uses it. */

import { type TokenRecord, tokenState } from "../domain/token.ts";
import { storageSettings } from "../shared/config.ts";
import { renderCount, showSafely } from "../shared/text.ts";
import { type GardenRecord, otherProcessesMs, type Storage } from "../storage/storage.ts";
import { CliError, exitCodes } from "./cli-error.ts";
import { type Command, confirmDeletion, jsonFlag } from "./command.ts";
import { withStorage } from "./opened-storage.ts";
import { renderTable, renderTime, toIsoTime } from "./terminal.ts";

export const listGardensCommand: Command = {
  name: "garden list",
  summary: "List the gardens in use, with their plants, last event and active tokens.",
  words: [],
  flags: { json: jsonFlag },
  settings: storageSettings,
  examples: ["plantstore garden list", "plantstore garden list --json | jq -r '.[].garden'"],
  async run(call) {
    const gardens = await withStorage(call, readGardens);
    if (call.flags.json) {
      const rows = gardens.map(({ lastEventAtMs, isEmpty, tokens, ...garden }) => ({
        ...garden,
        lastEventAt: toIsoTime(lastEventAtMs),
        tokens: tokens.map(({ id }) => id),
      }));
      call.terminal.out(`${JSON.stringify(rows, null, 2)}\n`);
      return;
    }
    const cells = gardens.map(({ garden, plants, lastEvent, lastEventAtMs: atMs, tokens }) => [
      garden,
      String(plants),
      atMs === undefined ? String(lastEvent) : `${lastEvent} (${renderTime(atMs)})`,
      tokens.map(({ id, user }) => `${id} (${user})`).join(", "),
    ]);
    call.terminal.out(renderTable([["GARDEN", "PLANTS", "LAST EVENT", "TOKENS"], ...cells]));
  },
};

export const deleteGardenCommand: Command = {
  name: "garden delete",
  summary: "Delete a garden that no active token opens: its plants, events and idempotency keys.",
  words: ["NAME"],
  flags: { yes: { help: "don't ask" } },
  settings: storageSettings,
  examples: ["plantstore garden delete alice", "plantstore garden delete greenhouse --yes"],
  run: (call) =>
    withStorage(call, async (storage) => {
      const [name = ""] = call.words;
      const title = `the garden "${showSafely(name)}"`;
      const found = (await readGardens(storage)).find(({ garden }) => garden === name);
      if (found === undefined) {
        const message = `There is no garden "${showSafely(name)}". See plantstore garden list.`;
        throw new CliError(message, exitCodes.notFound);
      }
      if (found.tokens.length > 0) {
        const ids = found.tokens.map(({ id }) => id).join(" ");
        throw new CliError(
          `Nothing was deleted: ${renderCount(found.tokens.length, "token")} can open ${title}. ` +
            `Revoke first: plantstore token revoke ${ids}`,
        );
      }
      const which = `${title} with ${renderCount(found.plants, "plant")}`;
      await confirmDeletion(call, which);
      await storage.deleteGarden(name);
      // By then, every service has noticed, and shows none of the plants any more.
      await Bun.sleep(2 * otherProcessesMs);
      call.terminal.say(`Deleted ${which}.`);
      return undefined;
    }),
};

type ListedGarden = GardenRecord & { readonly tokens: readonly TokenRecord[] };

/** With the active tokens of each. Gardens that hold nothing are there only if a token opens them. */
async function readGardens(storage: Storage): Promise<readonly ListedGarden[]> {
  const nowMs = Date.now();
  const active = (await storage.listTokens()).filter(
    (token) => tokenState(token, nowMs) === "active",
  );
  const tokens = Map.groupBy(active, ({ garden }) => garden);
  const stored = await storage.listGardens();
  const known = new Set(stored.map(({ garden }) => garden));
  const empty = [...tokens.keys()]
    .filter((garden) => !known.has(garden))
    .map((garden) => ({
      ...{ garden, plants: 0, lastEvent: 0, lastEventAtMs: undefined, isEmpty: true },
    }));
  return [...stored, ...empty]
    .filter(({ garden, isEmpty }) => !isEmpty || tokens.has(garden))
    .toSorted((one, other) => (one.garden < other.garden ? -1 : 1))
    .map((each) => ({ ...each, tokens: tokens.get(each.garden) ?? [] }));
}
