/** The limit: the same runtime repeating Plant Store's answers, with nothing behind them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RecordedAnswer } from "../load/answer-check.ts";
import type { Contender } from "./contender.ts";
import { bunPath, serversDirectory } from "./paths.ts";
import { describePlantAction } from "./plants-over-http.ts";

/** What it answers, by method: a scenario never has two answers to one method. */
export type AnswersByMethod = Record<string, RecordedAnswer>;

export const bare: Contender = {
  name: "bare",
  summary: "Bun answering Plant Store's bytes: no token, no validation, no storage (the limit)",
  deletesPerSecondMax: 1_000,
  readyPath: "/healthz",
  isEcho: true,
  findObstacle: () => undefined,
  readVersion: async () => `Bun ${Bun.version}`,
  prepare: async () => "not-looked-at",
  seed() {},
  describeStart: (directory, port) => ({
    command: [
      ...[bunPath, join(serversDirectory, "bare-server.ts")],
      ...[String(port), answersPath(directory)],
    ],
  }),
  describeAction: describePlantAction,
};

export function writeAnswers(directory: string, answers: AnswersByMethod): void {
  writeFileSync(answersPath(directory), JSON.stringify(answers));
}

function answersPath(directory: string): string {
  return join(directory, "answers.json");
}
