/** `plantstore plants` and `whoami`: call a running service by its HTTP API. */

import { Deleter } from "../../client/files/deleter.ts";
import { PlantRenderer, renderPlant } from "../../client/files/renderer.ts";
import type {
  Deletion,
  ListOptions,
  Plant,
  PlantField,
  PlantStore,
  Whole,
} from "../../client/plant-store.ts";
import { hasCode } from "../../client/problem-error.ts";
import { renderDraft } from "../../client/wire-text.ts";
import { integer } from "../shared/config.ts";
import { renderBounds, renderCount, showSafely } from "../shared/text.ts";
import { exitCodes, usageError } from "./cli-error.ts";
import {
  type Call,
  confirmDeletion,
  isForPeople,
  jsonFlag,
  parseText,
  printResult,
  readFlag,
  textFlag,
} from "./command.ts";
import { plantId, serviceCommand, tagFilter } from "./service-client.ts";
import { cancellable } from "./stop-signals.ts";
import { describeAccess, renderTable, withProgress } from "./terminal.ts";

/** What the service takes. */
const limitMax = 2 ** 31 - 1;

const searchFilter = {
  placeholder: "WORDS",
  help: "only plants that contain each of these words in their name or tag",
} as const;

export const addPlantCommand = serviceCommand({
  name: "plants add",
  summary: "Add a plant.",
  words: ["NAME"],
  flags: {
    tag: { placeholder: "TEXT", help: "its tag" },
    id: { placeholder: "ID", help: "its id; a negative one as --id=-7", fallback: "the next one" },
    json: jsonFlag,
  },
  examples: [
    'plantstore plants add "Monstera deliciosa" --tag "living room"',
    "plantstore plants add Fern --id 7 --url https://plants.example/v1",
  ],
  async run(store, call) {
    const [name = ""] = call.words;
    const id = readFlag(call, "id", plantId);
    const draft = { name, tag: textFlag(call, "tag"), id } satisfies Record<keyof Plant, unknown>;
    show(call, "Added", await store.create(draft));
  },
});

export const listPlantsCommand = serviceCommand({
  name: "plants list",
  summary: "List plants by their id: a table at a terminal, JSON elsewhere.",
  words: [],
  flags: {
    limit: { placeholder: "NUMBER", help: "maximum number of plants", fallback: "all" },
    tag: tagFilter,
    search: searchFilter,
    newest: { help: "the newest first: by descending id" },
    json: jsonFlag,
  },
  examples: [
    'plantstore plants list --search "royal fern" --newest --limit 20',
    "plantstore plants list --json | jq -r '.[].name'",
  ],
  async run(store, call) {
    const limit = readFlag(call, "limit", integer(0, limitMax));
    const filter = readFilter(call);
    const order = call.flags.newest === true ? "desc" : undefined;
    const isTable = isForPeople(call);
    const renderer = new PlantRenderer("json");
    let count = 0;
    for await (const plants of store.pages({ limit, ...filter, order })) {
      call.terminal.out(isTable ? renderPlants(plants, count === 0) : renderer.page(plants));
      count += plants.length;
    }
    if (!isTable) call.terminal.out(renderer.footer());
    else if (count === 0 && limit !== 0) {
      const which = describeFilter(filter);
      call.terminal.say(`There are no plants${which}. Add one: plantstore plants add NAME`);
    }
  },
});

export const listTagsCommand = serviceCommand({
  name: "plants tags",
  summary: "List the tags, and how many plants have each.",
  words: [],
  flags: { json: jsonFlag },
  examples: ["plantstore plants tags", "plantstore plants tags --json | jq length"],
  async run(store, call) {
    const tags = await Array.fromAsync(store.tags());
    const { terminal } = call;
    const rows = tags.map(({ tag, plants }) => [renderCount(plants), tag || "(no tag)"]);
    if (!isForPeople(call)) terminal.out(`${JSON.stringify(tags)}\n`);
    else if (tags.length === 0) terminal.say("There are no plants.");
    else terminal.out(renderTable([["PLANTS", "TAG"], ...rows]));
  },
});

export const getPlantsCommand = serviceCommand({
  name: "plants get",
  summary: "Show plants by their ids.",
  words: ["ID..."],
  flags: { json: jsonFlag },
  examples: ["plantstore plants get 7", "plantstore plants get 7 8 -- -9"],
  async run(store, call) {
    const found: Plant[] = [];
    const exitCode = await forEachPlant(store, call, async (id) => {
      found.push(await store.get(id));
    });
    const json = found.map((plant) => `${renderDraft(plant)}\n`).join("");
    const isTable = isForPeople(call) && found.length > 0;
    call.terminal.out(isTable ? renderPlants(found, true) : json);
    return exitCode;
  },
});

export const editPlantCommand = serviceCommand({
  name: "plants edit",
  summary: "Change a plant's name, tag or both, or the tag of several plants.",
  words: ["ID..."],
  flags: {
    name: { placeholder: "TEXT", help: "its new name", fallback: "as it is" },
    tag: { placeholder: "TEXT", help: "its new tag; --tag= removes it", fallback: "as it is" },
    json: jsonFlag,
  },
  examples: [
    'plantstore plants edit 7 --name "Royal fern" --tag pond',
    "plantstore plants edit 7 8 9 --tag hall",
    "plantstore plants edit --tag pond -- -7",
  ],
  async run(store, call) {
    const change = { name: textFlag(call, "name"), tag: textFlag(call, "tag") } satisfies Record<
      PlantField,
      unknown
    >;
    if (change.name === undefined && change.tag === undefined) {
      throw usageError("Nothing to change. Give the plant a new --name, --tag or both.");
    }
    if (change.name !== undefined && call.words.length > 1) {
      throw usageError("--name is for one plant. Several plants can get the same --tag.");
    }
    return forEachPlant(store, call, async (id) =>
      show(call, "Changed", await store.update(id, change)),
    );
  },
});

export const deletePlantCommand = serviceCommand({
  name: "plants delete",
  summary: "Delete plants by their ids, by their tag or by a search.",
  words: ["[ID...]"],
  flags: {
    tag: tagFilter,
    search: searchFilter,
    yes: { help: "don't ask before deleting plants by --tag or --search" },
    json: jsonFlag,
  },
  examples: ["plantstore plants delete 7 8 -- -9", 'plantstore plants delete --tag "living room"'],
  async run(store, call) {
    const filter = readFilter(call);
    const isFiltered = filter.tag !== undefined || filter.q !== undefined;
    if (isFiltered && call.words.length > 0) {
      throw usageError("Give ids, or --tag and --search, but not both.");
    }
    if (isFiltered) return deleteFiltered(store, call, filter);
    if (call.words.length === 0) {
      throw usageError("Which plants? Give their ids, a --tag or a --search.");
    }
    return forEachPlant(store, call, async (id) =>
      reportDeletion(call, id, await store.delete(id)),
    );
  },
});

async function deleteFiltered(store: PlantStore, call: Call, filter: Filter): Promise<undefined> {
  const ids = await Array.fromAsync(store.list(filter), ({ id }) => id);
  const which = `${renderCount(ids.length, "plant")}${describeFilter(filter)}`;
  if (ids.length > 0) await confirmDeletion(call, which);
  const total = renderCount(ids.length, "plant");
  await cancellable("Not all of these plants were deleted.", async (_, { asked, over }) => {
    const deleter = new Deleter(store, ids, { stop: asked, signal: over });
    const describe = () => `${renderCount(deleter.deleted)} of ${total}`;
    try {
      await withProgress(call.terminal, describe, () => deleter.run(), asked);
    } finally {
      reportDeletions(call, deleter);
    }
  });
  return undefined;
}

function reportDeletions(call: Call, deleter: Deleter): void {
  const { deleted, deletedMax, unconfirmed, missing } = deleter;
  const parts = [`Deleted ${renderBounds(deleted, deletedMax, "plant")}.`];
  if (deletedMax > deleted) parts.push("The outcome of the last request is unknown.");
  if (unconfirmed > 0) parts.push("A response was lost, so some may have been deleted before.");
  if (missing > 0) parts.push(`Already gone: ${renderCount(missing)}.`);
  const counts = { deleted, ...(deletedMax > deleted && { deletedMax }), missing };
  printResult(call, parts.join(" "), JSON.stringify(counts));
}

export const whoamiCommand = serviceCommand({
  name: "whoami",
  summary: "Show the token's user, garden, scope and expiry, and how many plants there are.",
  words: [],
  flags: { json: jsonFlag },
  examples: ["plantstore whoami", "plantstore whoami --json | jq -r .scope"],
  async run(store, call) {
    const me = await store.me();
    const expiresAtMs = me.expiresAt === undefined ? undefined : Date.parse(me.expiresAt);
    const text = `${describeAccess({ ...me, expiresAtMs })}. It has ${renderCount(me.plants, "plant")}.`;
    printResult(call, text, JSON.stringify(me));
  },
});

/** Which plants a command is about. */
type Filter = Pick<ListOptions, "tag" | "q">;

function readFilter(call: Call): Filter {
  const q = textFlag(call, "search");
  if (q?.trim() === "") throw usageError("--search needs a word to look for.");
  return { tag: textFlag(call, "tag"), q };
}

/** What follows the word `plants`. */
function describeFilter({ tag, q }: Filter): string {
  const tagged = tag === "" ? " without a tag" : ` with the tag "${showSafely(tag ?? "")}"`;
  const found = q === undefined ? "" : ` matching "${showSafely(q)}"`;
  return (tag === undefined ? "" : tagged) + found;
}

/** Takes each id of the call. Resolves to the exit code if a plant is missing. */
async function forEachPlant(
  store: PlantStore,
  call: Call,
  act: (id: bigint) => Promise<void>,
): Promise<number | undefined> {
  const ids = call.words.map((word) => parseText("ID", word, plantId));
  let exitCode: number | undefined;
  for (const id of ids) {
    try {
      await act(id);
    } catch (error) {
      if (!hasCode(error, "not-found")) throw error;
      // A wrong URL also responds with 404, but lists no plants.
      await store.page({ limit: 1 });
      call.terminal.say(`plantstore: There is no plant ${id}. See plantstore plants list.`);
      exitCode = exitCodes.notFound;
    }
  }
  return exitCode;
}

function reportDeletion(call: Call, id: bigint, { confirmed }: Deletion): void {
  const text = confirmed
    ? `Deleted plant ${id}.`
    : `Plant ${id} is deleted. A response was lost, so it may have been deleted before.`;
  printResult(call, text, `{"id":${id},"confirmed":${confirmed}}`);
}

/** What was done to a plant. */
function show(call: Call, done: string, plant: Plant): void {
  const text = `${done} plant ${plant.id}: ${showSafely(renderPlant(plant))}.`;
  printResult(call, text, renderDraft(plant));
}

function renderPlants(plants: readonly Plant[], hasHeader: boolean): string {
  const rows = plants.map(({ id, name, tag }: Whole<"name" | "tag">) => [String(id), name, tag]);
  return renderTable(hasHeader ? [["ID", "NAME", "TAG"], ...rows] : rows);
}
