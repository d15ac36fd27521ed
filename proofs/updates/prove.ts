/**
 * `npm run prove updates [gardens] [seed]`: each garden is exported, edited at random, imported with
 * `--update` and imported again, by default 200 times. In half of them responses get lost, in the
 * other half a second client changes the same plants meanwhile. What happened is read from the
 * garden's events, and compared with a model and with what the command said.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeDice, spread } from "../../testing/dice.ts";
import type { Plant } from "../../testing/garden-model.ts";
import { openGarden, serveHere } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import { prove, type Trial } from "../proof.ts";
import { type Dice, type Expected, editSheet, expectUpdate, makePlants } from "./sheet.ts";

interface GardenEvent {
  readonly type: "plant.created" | "plant.replaced" | "plant.deleted";
  readonly user: string;
  readonly plant: Plant;
}

/** What the command printed. */
interface Said {
  readonly stored: number;
  readonly storedMax?: number;
  readonly changed: number;
  readonly changedMax?: number;
  readonly unchanged: number;
  readonly refused: number;
}

type Service = Awaited<ReturnType<typeof serveHere>>;
type Garden = Awaited<ReturnType<typeof openGarden>>;

const parseIds = (text: string) =>
  JSON.parse(text.replace(/"id":(-?\d+)/g, '"id":"$1"'), (key, value) =>
    key === "id" ? BigInt(value) : value,
  );

async function listPlants({ call }: Garden): Promise<Plant[]> {
  return parseIds(await (await call("GET /plants?include=id")).text());
}

/** The number of the last event, and the events since one. */
async function readEvents({ call }: Garden, after: number): Promise<GardenEvent[]> {
  return parseIds(await (await call(`GET /events?limit=1000&after=${after}`)).text());
}

async function readLastEvent({ call }: Garden): Promise<number> {
  return (await (await call("GET /me")).json()).lastEvent;
}

type Forward = () => Promise<Response>;

/** Passes requests on; `meddle` decides about those that read or write. */
function openProxy(url: string, meddle: (request: Request, forward: Forward) => Promise<Response>) {
  return Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const { method, headers } = request;
      const body = await request.text();
      return meddle(request, async () => {
        const init = { method, headers, ...(body && { body }) };
        const response = await fetch(url + pathname + search, init);
        return new Response(await response.text(), response);
      });
    },
  });
}

/** Loses the responses of some writes. */
function loseSome(dice: Dice) {
  return async ({ method }: Request, forward: Forward) => {
    const response = await forward();
    const isLost = method !== "GET" && dice(5) === 0;
    return isLost ? new Response(null, { status: 502 }) : response;
  };
}

/** A second client changes or deletes plants right before they are read or changed. */
function changeSome(other: Garden, dice: Dice) {
  let changes = 0;
  return async ({ url }: Request, forward: Forward) => {
    const [, id] = /\/plants\/(-?\d+)/.exec(url) ?? [];
    const chance = id === undefined ? 9 : dice(10);
    const theirs = `theirs ${changes++}`;
    if (chance === 0) await other.call(`DELETE /plants/${id}`);
    else if (chance < 4) {
      const field = chance === 1 ? "name" : "tag";
      await other.call(`PATCH /plants/${id}`, { body: JSON.stringify({ [field]: theirs }) });
    }
    return forward();
  };
}

export async function updateGarden(service: Service, seed: number): Promise<Trial> {
  const dice = makeDice(spread(seed));
  using folder = makeTemporaryFolder();
  const name = `garden-${seed}`;
  const sheetOwner = await openGarden(service, { user: "owner", garden: name });
  const other = await openGarden(service, { user: "other", garden: name });
  const hasOther = seed % 2 === 0;
  const faults: string[] = [];
  const expect = (what: string, found: unknown, wanted: unknown) => {
    if (Bun.deepEquals(found, wanted)) return;
    faults.push(`${what}: ${Bun.inspect(found)} instead of ${Bun.inspect(wanted)}`);
  };

  const drafts = makePlants(dice).map((plant) =>
    JSON.stringify({ ...plant, id: 0 }).replace('"id":0', `"id":${plant.id}`),
  );
  await sheetOwner.call("POST /plants/bulk", { body: `[${drafts.join()}]` });
  const format = dice(4) === 0 ? "jsonl" : "csv";
  const path = join(folder.path, `plants.${format}`);
  await sheetOwner.run(["export", path]);
  const sheet = editSheet(readFileSync(path, "utf8"), format, dice);
  writeFileSync(path, sheet.text);

  async function update(url = service.url) {
    const before = await listPlants(sheetOwner);
    const start = await readLastEvent(sheetOwner);
    const { out, errors, exitCode } = await sheetOwner.run(
      ["import", path, "--update", "--yes"],
      url,
    );
    if (out === "") throw new Error(`It ended with ${exitCode}: ${errors}`);
    const said: Said = JSON.parse(out);
    const events = await readEvents(sheetOwner, start);
    const after = await listPlants(sheetOwner);
    return { before, after, events, said, errors, expected: expectUpdate(before, sheet) };
  }

  const meddle = hasOther ? changeSome(other, dice) : loseSome(dice);
  using proxy = openProxy(service.url, meddle);
  const first = await update(proxy.url.origin);
  const own = first.events.filter(({ user }) => user === "owner");
  const theirs = first.events.filter(({ user }) => user === "other");
  const changes = own.filter(({ type }) => type === "plant.replaced");
  const additions = own.filter(({ type }) => type === "plant.created");
  const { expected, said } = first;
  expect("it said", said, {
    stored: additions.length,
    changed: changes.length,
    unchanged: expected.unchanged,
    refused: expected.refused + expected.changed.size - changes.length,
  });
  expect(
    "it added",
    countContents(additions.map(({ plant }) => plant)),
    countContents(expected.added),
  );
  for (const { plant } of changes) expect("it changed", plant, expected.changed.get(plant.id));
  if (!hasOther) expect("changes", changes.length, expected.changed.size);
  // After the second client's change, a plant is theirs.
  for (const [at, { plant, user }] of first.events.entries()) {
    const earlier = first.events
      .slice(0, at)
      .some((event) => event.user === "other" && event.plant.id === plant.id);
    if (user === "owner" && earlier) faults.push(`a change of plant ${plant.id} was lost`);
  }
  for (const id of expected.changed.keys()) {
    if (changes.some(({ plant }) => plant.id === id)) continue;
    if (!first.errors.includes(`plant ${id} was `)) faults.push(`it didn't name plant ${id}`);
  }
  expect("the garden", sortById(first.after), sortById(replay(first.before, first.events)));

  const second = await update();
  const again: Expected = hasOther
    ? second.expected
    : {
        changed: new Map(),
        added: [],
        unchanged: sheet.rows.length - expected.refused,
        refused: expected.refused,
      };
  expect("the second said", second.said, {
    stored: again.added.length,
    changed: again.changed.size,
    unchanged: again.unchanged,
    refused: again.refused,
  });
  expect("the second changed", second.events.length, again.added.length + again.changed.size);
  const last = hasOther ? await update() : second;
  expect("the last changed", last.events, []);
  return {
    faults,
    figures: {
      rows: sheet.rows.length,
      changed: said.changed,
      added: said.stored,
      unchanged: said.unchanged,
      refused: said.refused,
      "by the second client": theirs.length,
    },
  };
}

function countContents(
  plants: readonly { readonly name: string; readonly tag: string }[],
): string[] {
  return plants.map(({ name, tag }) => JSON.stringify([name, tag])).toSorted();
}

function replay(garden: readonly Plant[], events: readonly GardenEvent[]): Plant[] {
  const plants = new Map(garden.map((plant) => [plant.id, plant]));
  for (const { type, plant } of events) {
    if (type === "plant.deleted") plants.delete(plant.id);
    else plants.set(plant.id, plant);
  }
  return [...plants.values()];
}

function sortById(plants: readonly Plant[]): Plant[] {
  return plants.toSorted((one, other) => (one.id < other.id ? -1 : 1));
}

if (import.meta.main) {
  const service = await serveHere();
  await prove({
    trials: "gardens",
    count: 200,
    run: (seed) => updateGarden(service, seed),
    conclude: async () => {
      await service[Symbol.asyncDispose]();
      return [];
    },
  });
}
