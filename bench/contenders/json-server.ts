/** json-server: a JSON file behind HTTP. It has no tokens and makes nothing durable. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Action, slotMark } from "../load/action.ts";
import { anyBody, jsonBody } from "../load/answer-check.ts";
import { runToEnd } from "../process/children.ts";
import {
  type ActionName,
  type Contender,
  findListFault,
  findPlantFault,
  firstPlantNumber,
  plantName,
  tag,
} from "./contender.ts";
import { benchDirectory, findNode, readPackageVersion } from "./paths.ts";
import { numbersFrom, sampleNumber } from "./plants-over-http.ts";

const program = join(benchDirectory, "node_modules", "json-server", "lib", "cli", "bin.js");

export const jsonServer: Contender = {
  name: "json-server",
  summary: "a JSON file on Node: no token, no validation, nothing synced to the disk",
  deletesPerSecondMax: 600,
  readyPath: "/plants?_limit=1",
  isEcho: false,
  findObstacle: () => (findNode() ? undefined : "Node is not installed"),
  async readVersion() {
    const output = await runToEnd({ command: [findNode() ?? "node", "--version"] });
    return `${await readPackageVersion("json-server")}, Node ${output.standardOutput.trim()}`;
  },
  async prepare(directory) {
    writePlants(directory, 0);
    return "none";
  },
  seed: writePlants,
  describeStart: (directory, port) => ({
    command: [
      ...[findNode() ?? "node", program, "--quiet", "--host", "127.0.0.1"],
      ...["--port", String(port), dataPath(directory)],
    ],
    environment: { NODE_ENV: "production" },
    directory,
  }),
  describeAction,
};

function describeAction(name: ActionName, _credential: string, plants: number): Action | undefined {
  const list = (path: string, count: number): Action => ({
    method: "GET",
    path,
    headers: {},
    status: 200,
    findFault: jsonBody((value) => findListFault(value, count)),
  });
  const remove = { method: "DELETE", headers: {}, findFault: anyBody } as const;
  switch (name) {
    case "list-20":
      return list("/plants?_limit=20", 20);
    case "list-1":
      return list("/plants?_limit=1", 1);
    case "list-all":
      return list("/plants", plants);
    case "create":
      return {
        method: "POST",
        path: "/plants",
        headers: {},
        body: JSON.stringify({ name: plantName(slotMark), tag }),
        slot: numbersFrom(firstPlantNumber),
        status: 201,
        findFault: jsonBody((value) => findPlantFault(value, plantName(sampleNumber))),
      };
    case "delete": {
      const slot = numbersFrom(firstPlantNumber, plants);
      return { ...remove, path: `/plants/${slotMark}`, slot, status: 200 };
    }
    case "refused-404":
      return { ...remove, path: "/plants/7", status: 404 };
    default:
      return undefined;
  }
}

function dataPath(directory: string): string {
  return join(directory, "plants.json");
}

function writePlants(directory: string, count: number): void {
  const plants = Array.from({ length: count }, (_, index) => {
    const id = firstPlantNumber + index;
    return { id, name: plantName(id), tag };
  });
  writeFileSync(dataPath(directory), JSON.stringify({ plants }));
}
