/** The limit: the same runtime on one thread, repeating Plant Store's bytes with nothing behind. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RecordedResponse } from "../load/action.ts";
import { bunPath, serversDirectory } from "../paths.ts";
import { type Contender, type Data, describeAction } from "./contender.ts";

/** By method: no scenario has two responses to one method. */
export type ResponsesByMethod = Record<string, RecordedResponse>;

export const bare: Contender = {
  name: "bare",
  summary: "Bun on one thread repeating Plant Store's bytes: no token, no validation, no storage",
  instances: 1,
  deletesPerSecondMax: 0,
  readyPath: "/healthz",
  isEcho: true,
  readVersion: async () => `Bun ${Bun.version}`,
  async prepare(directory) {
    // Replaced before a scenario; enough to measure the start.
    const data = { directory, database: join(directory, "responses.json"), tokens: ["none"] };
    writeResponses(data, { GET: { status: 200, headers: {}, body: "[]" } });
    return data;
  },
  describeStart: ({ database }, port) => ({
    command: [bunPath, join(serversDirectory, "bare-server.ts"), String(port), database],
  }),
  describeAction,
};

export function writeResponses(data: Data, responses: ResponsesByMethod): void {
  writeFileSync(data.database, JSON.stringify(responses));
}
