/** The requests that show how cost grows: at the start of a garden, anywhere in it, in rotation. */
import { findListFault, firstPlantNumber, tag } from "../contenders/contender.ts";
import { describePlantAction } from "../contenders/plants-over-http.ts";
import { type Action, type Share, slotMark } from "../load/action.ts";
import { anyBody, jsonBody } from "../load/answer-check.ts";

export type GrowthAction = "list 10" | "list 10 anywhere" | "list 20" | "create";

export type GrowthShares = ReadonlyMap<GrowthAction, readonly Share[]>;

/** A prime, so that stepping by it visits the plants of a garden in a scattered order. */
const scatterStride = 7_368_787;
/** As many as the smallest garden has, so that the answers of all sizes are equally long. */
const smallestGarden = 10;
export const plantsPerGarden = 20;

export function describeGrowthActions(token: string, first: number, plants: number): GrowthShares {
  const list = describePlantAction("list-20", token, plants);
  const start: Action = {
    ...list,
    path: `/plants?limit=${smallestGarden}`,
    findFault: jsonBody((value) => findListFault(value, smallestGarden)),
  };
  // Behind any plant of the garden but the last ones, so that there are always enough to list.
  const span = Math.max(1, plants - smallestGarden);
  const anywhere: Action = {
    ...list,
    path: `/plants?limit=${smallestGarden}&after=${slotMark}`,
    slot: { kind: "number", first: first - 1, span, stride: scatterStride, wraps: true },
    findFault: start.findFault,
  };
  return new Map([
    ["list 10", alone(start)],
    ["list 10 anywhere", alone(anywhere)],
    ["create", alone(describePlantAction("create", token, plants))],
  ]);
}

/** Every request with the next token of a file, each of which opens a garden of its own. */
export function rotateTokens(path: string): GrowthShares {
  const slot = { kind: "line", path } as const;
  const list = describePlantAction("list-20", slotMark, plantsPerGarden);
  const create: Action = {
    ...describePlantAction("create", slotMark, plantsPerGarden),
    body: JSON.stringify({ name: `Plant ${firstPlantNumber}`, tag }),
  };
  return new Map([
    ["list 20", alone({ ...list, slot })],
    ["create", alone({ ...create, slot, findFault: anyBody })],
  ]);
}

function alone(action: Action): readonly Share[] {
  return [{ action, weight: 1 }];
}
