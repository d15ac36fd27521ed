/**
 * The limit: the same runtime repeating Plant Store's answers, with nothing behind them. On one
 * thread, as the runtime is, and on as many as Plant Store takes.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readConfig } from "../../src/config.ts";
import type { RecordedAnswer } from "../load/answer-check.ts";
import type { Contender } from "./contender.ts";
import { bunPath, serversDirectory } from "./paths.ts";
import { describePlantAction } from "./plants-over-http.ts";

/** What it answers, by method: a scenario never has two answers to one method. */
export type AnswersByMethod = Record<string, RecordedAnswer>;

function createBare(name: "bare" | "bare-threads", threads: number, summary: string): Contender {
  return {
    name,
    summary,
    deletesPerSecondMax: 1_000,
    readyPath: "/healthz",
    isEcho: true,
    isForHeadlines: name === "bare-threads",
    findObstacle: () => undefined,
    readVersion: async () => `Bun ${Bun.version}, threads: ${threads}`,
    prepare: async () => "not-looked-at",
    seed() {},
    describeStart: (directory, port) => ({
      command: [
        ...[bunPath, join(serversDirectory, "bare-server.ts")],
        ...[String(port), answersPath(directory), String(threads)],
      ],
    }),
    describeAction: describePlantAction,
  };
}

export const bare = createBare(
  "bare",
  1,
  "Bun answering Plant Store's bytes: no token, no validation, no storage (the limit of a thread)",
);

export const bareThreads = createBare(
  "bare-threads",
  readConfig({}, {}).threads,
  "the same on as many threads as Plant Store takes (the limit of the machine)",
);

export function writeAnswers(directory: string, answers: AnswersByMethod): void {
  writeFileSync(answersPath(directory), JSON.stringify(answers));
}

function answersPath(directory: string): string {
  return join(directory, "answers.json");
}
