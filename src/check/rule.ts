/** What a rule of the interface is, and the topics that rules are about. */
import type { Probe } from "./probe.ts";

export const topics = [
  "surface",
  "requests",
  "plant",
  "create",
  "idempotency",
  "list",
  "delete",
  "tokens",
  "errors",
  "browser clients",
  "limits",
  "health",
  "openapi",
] as const;

export type Topic = (typeof topics)[number];

export interface Rule {
  readonly topic: Topic;
  /** The rule itself, as a sentence. */
  readonly name: string;
  /** Fails with `Violation` if the rule does not hold, with `Skipped` if that cannot be seen. */
  readonly run: (probe: Probe) => Promise<void>;
}

/** The rules of a topic, from sentences to how each is seen. */
export function rulesOf(topic: Topic, sentences: Readonly<Record<string, Rule["run"]>>): Rule[] {
  return Object.entries(sentences).map(([name, run]) => ({ topic, name, run }));
}
