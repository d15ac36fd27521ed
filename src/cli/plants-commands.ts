/** `plantstore plants add|list|delete`: the plants of a running service, by its HTTP API. */
import {
  type Deletion,
  type Plant,
  type PlantStore,
  PlantStoreProblem,
} from "../client/plant-store.ts";
import { type Check, integer } from "../config.ts";
import { exitCodes } from "./cli-error.ts";
import {
  type Call,
  type Command,
  isForPeople,
  jsonFlag,
  parseText,
  readFlag,
  textFlag,
} from "./command.ts";
import { PlantWriter, renderJsonPlant } from "./plant-file.ts";
import { variables, withStore } from "./service-client.ts";
import { renderTable, showSafely } from "./terminal.ts";

/** What the service takes. */
const limitMax = 2 ** 31 - 1;

/** The service checks its range. */
const plantId: Check<bigint> = {
  parse: (text) => (/^-?\d{1,30}$/.test(text) ? BigInt(text) : undefined),
  expected: "an integer",
};

export const addPlantCommand: Command = {
  name: "plants add",
  summary: "Add a plant.",
  words: ["NAME"],
  flags: {
    tag: { placeholder: "TEXT", help: "its tag" },
    id: { placeholder: "ID", help: "its id; a negative one as --id=-7", fallback: "the next one" },
    json: jsonFlag,
  },
  settings: ["url"],
  variables,
  examples: [
    'plantstore plants add "Monstera deliciosa" --tag "living room"',
    "plantstore plants add Fern --id 7 --url https://plants.example/v1",
  ],
  async run(call) {
    await withStore(call, async (store) => {
      const [name = ""] = call.words;
      const id = readFlag(call, "id", plantId);
      const plant = await store.create({ name, tag: textFlag(call, "tag"), id });
      if (isForPeople(call)) call.terminal.out(`Added ${describe(plant)}.\n`);
      else call.terminal.out(`${renderJsonPlant(plant)}\n`);
    });
  },
};

export const listPlantsCommand: Command = {
  name: "plants list",
  summary: "List plants by their id: a table at a terminal, JSON elsewhere.",
  words: [],
  flags: {
    limit: { placeholder: "NUMBER", help: "at most so many", fallback: "all" },
    tag: { placeholder: "TEXT", help: "only those with this tag, found by reading all" },
    json: jsonFlag,
  },
  settings: ["url"],
  variables,
  examples: [
    "plantstore plants list --limit 20",
    "plantstore plants list --json | jq -r '.[].name'",
  ],
  async run(call) {
    await withStore(call, async (store) => {
      const limit = readFlag(call, "limit", integer(0, limitMax));
      const tag = textFlag(call, "tag");
      const isTable = isForPeople(call);
      const writer = new PlantWriter("json");
      let count = 0;
      // Plants are filtered by tag here, so the limit is counted here, too.
      for await (const page of store.pages(tag === undefined ? { limit } : {})) {
        const fitting = tag === undefined ? page : page.filter((plant) => plant.tag === tag);
        const plants = fitting.slice(0, (limit ?? Number.POSITIVE_INFINITY) - count);
        if (plants.length > 0) {
          call.terminal.out(isTable ? renderPlants(plants, count === 0) : writer.page(plants));
        }
        count += plants.length;
        if (count === limit) break;
      }
      if (!isTable) call.terminal.out(writer.footer());
      else if (count === 0 && limit !== 0) {
        const which = tag === undefined ? "" : ` with the tag "${showSafely(tag)}"`;
        call.terminal.say(`There are no plants${which}. Add one: plantstore plants add NAME`);
      }
    });
  },
};

export const deletePlantCommand: Command = {
  name: "plants delete",
  summary: "Delete plants by their ids.",
  words: ["ID..."],
  flags: { json: jsonFlag },
  settings: ["url"],
  variables,
  examples: [
    "plantstore plants delete 7",
    "plantstore plants delete 8 9",
    "plantstore plants delete -- -7",
  ],
  run: (call) =>
    withStore(call, async (store) => {
      const ids = call.words.map((word) => parseText("ID", word, plantId));
      let exitCode: number | undefined;
      for (const id of ids) {
        const deletion = await tryToDelete(store, id);
        if (deletion !== undefined) reportDeletion(call, id, deletion);
        else {
          call.terminal.say(`plantstore: There is no plant ${id}. See plantstore plants list.`);
          exitCode = exitCodes.notFound;
        }
      }
      return exitCode;
    }),
};

function reportDeletion(call: Call, id: bigint, { confirmed }: Deletion): void {
  const { terminal } = call;
  if (!isForPeople(call)) terminal.out(`{"id":${id},"confirmed":${confirmed}}\n`);
  else if (confirmed) terminal.out(`Deleted plant ${id}.\n`);
  else terminal.out(`Plant ${id} is gone. A response was lost, so it may have been gone before.\n`);
}

/** Absent if there is no such plant. */
async function tryToDelete(store: PlantStore, id: bigint): Promise<Deletion | undefined> {
  try {
    return await store.delete(id);
  } catch (error) {
    if (!(error instanceof PlantStoreProblem) || error.code !== "not-found") throw error;
    // A wrong URL also responds with 404, but lists no plants.
    for await (const _page of store.pages({ limit: 1 })) break;
    return undefined;
  }
}

function describe({ id, name, tag }: Plant): string {
  const suffix = tag === "" ? "" : ` (${showSafely(tag)})`;
  return `plant ${id}: ${showSafely(name)}${suffix}`;
}

function renderPlants(plants: readonly Plant[], hasHeader: boolean): string {
  const rows = plants.map(({ id, name, tag }) => [String(id), name, tag]);
  return renderTable(hasHeader ? [["ID", "NAME", "TAG"], ...rows] : rows);
}
