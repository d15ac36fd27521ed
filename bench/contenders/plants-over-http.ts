/** Plant Store's own requests, which `bare` and the servers written by hand answer in the same form. */
import { type Action, type Slot, slotMark } from "../load/action.ts";
import { anyBody, emptyBody, jsonBody } from "../load/answer-check.ts";
import {
  type ActionName,
  findListFault,
  findPlantFault,
  firstPlantNumber,
  plantName,
  tag,
} from "./contender.ts";

/** What a slot is filled with where a single request is made to check the answer. */
export const sampleNumber = String(firstPlantNumber);

export function describePlantAction(name: ActionName, token: string, plants: number): Action {
  const headers = { Authorization: `Bearer ${token}` };
  const get = { method: "GET", headers } as const;
  const list = (path: string, count: number): Action => ({
    ...get,
    path,
    status: 200,
    findFault: jsonBody((value) => findListFault(value, count)),
  });
  switch (name) {
    case "list-20":
      return list("/plants?limit=20", 20);
    case "list-1":
      return list("/plants?limit=1", 1);
    case "list-all":
      return list("/plants", plants);
    case "create":
      return {
        method: "POST",
        path: "/plants",
        headers,
        body: JSON.stringify({ name: plantName(slotMark), tag }),
        slot: numbersFrom(firstPlantNumber),
        status: 201,
        findFault: jsonBody((value) => findPlantFault(value, plantName(sampleNumber))),
      };
    case "delete":
      return {
        method: "DELETE",
        path: `/plants/${slotMark}`,
        headers,
        slot: numbersFrom(firstPlantNumber, plants),
        status: 204,
        findFault: emptyBody,
      };
    case "refused-401": {
      const wrong = { Authorization: `Bearer ${token.slice(0, -1)}-` };
      return { ...get, path: "/plants?limit=20", headers: wrong, status: 401, findFault: anyBody };
    }
    case "refused-400":
      return { ...get, path: "/plants?limit=many", status: 400, findFault: anyBody };
    case "refused-404":
      return { method: "DELETE", path: "/plants/7", headers, status: 404, findFault: anyBody };
  }
}

/** Ends where the numbers would get a tenth digit. */
export function numbersFrom(first: number, count = 999_999_999 - first): Slot {
  return { kind: "number", first, span: count, stride: 1, wraps: false };
}
