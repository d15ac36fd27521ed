/** The command line of the benchmark. */
import { parseArgs } from "node:util";
import { type ContenderName, contenderNames } from "./contenders/contender.ts";
import { scenarios } from "./scenarios.ts";

const otherParts = ["growth", "slow-disk", "memory", "start", "postgres"] as const;
export type PartName = (typeof otherParts)[number];

export interface Options {
  readonly isQuick: boolean;
  readonly wantsHelp: boolean;
  readonly scenarios: ReadonlySet<string>;
  readonly parts: ReadonlySet<PartName>;
  readonly contenders: ReadonlySet<ContenderName>;
  /** Whether something was left out, so that the results do not stand for a whole run. */
  readonly isFiltered: boolean;
  readonly pocketbasePath: string | undefined;
  /** A checkout of another version. */
  readonly previousPath: string | undefined;
}

export const help = `Measures Plant Store beside what one would use instead.

  npm run bench                 everything, in under 15 minutes
  npm run bench -- --quick      a part of it, in under 2 minutes

  --only LIST         scenarios and parts, separated by commas:
                      ${scenarios.map(({ name }) => name).join(", ")},
                      ${otherParts.join(", ")}
  --contenders LIST   of ${contenderNames.join(", ")}; Plant Store always runs
  --pocketbase PATH   an executable, where the npm package has none for this machine
  --previous DIR      a checkout of another version, installed with npm ci, to compare with
  --help              this text

A whole run writes results.json, results.md and chart.svg to bench/, any other to bench/.output/.
`;

/** Fails with one line that names what makes no sense. */
export function readOptions(words: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...words],
    options: {
      quick: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
      only: { type: "string" },
      contenders: { type: "string" },
      pocketbase: { type: "string" },
      previous: { type: "string" },
    },
  });
  const scenarioNames = scenarios
    .filter(({ isHeadline }) => isHeadline || !values.quick || values.only !== undefined)
    .map(({ name }) => name);
  const known = [...scenarioNames, ...otherParts];
  const only = readList("--only", values.only, known);
  const contenders = readList("--contenders", values.contenders, contenderNames);
  return {
    isQuick: values.quick,
    wantsHelp: values.help,
    scenarios: new Set(scenarioNames.filter((name) => only.has(name))),
    parts: new Set(otherParts.filter((name) => only.has(name))),
    contenders: new Set([...contenders, "plant-store"] as ContenderName[]),
    isFiltered: values.only !== undefined || values.contenders !== undefined,
    pocketbasePath: values.pocketbase,
    previousPath: values.previous,
  };
}

function readList(
  flag: string,
  text: string | undefined,
  known: readonly string[],
): ReadonlySet<string> {
  if (text === undefined) return new Set(known);
  const chosen = text.split(",").map((word) => word.trim());
  for (const word of chosen) {
    if (!known.includes(word)) {
      throw new Error(`${flag} knows no ${JSON.stringify(word)}, only ${known.join(", ")}.`);
    }
  }
  return new Set(chosen);
}
