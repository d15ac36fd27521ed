/** The command line of the benchmark. */
import { parseArgs } from "node:util";
import { type ContenderName, contenderNames } from "./contenders/contender.ts";
import {
  fullTiming,
  type PartName,
  partNames,
  quickTiming,
  scenarios,
  type Timing,
} from "./scenarios.ts";

export interface Options {
  readonly wantsHelp: boolean;
  readonly timing: Timing;
  readonly scenarios: ReadonlySet<string>;
  readonly parts: ReadonlySet<PartName>;
  readonly contenders: ReadonlySet<ContenderName>;
  /** Whether the results may replace those that the documents show. */
  readonly isWhole: boolean;
  /** A checkout of another version. */
  readonly previousPath: string | undefined;
}

export const help = `Measures Plant Store beside what you could use instead.

  npm run bench [SCENARIO …]

  --quick             the headlines, in under 2 minutes
  --contenders LIST   some of ${contenderNames.slice(1).join(", ")}
  --previous DIR      also measure another version: a checkout in which you ran npm ci
  --help              this text

Scenarios: ${scenarios.map(({ name }) => name).join(", ")},
  ${partNames.join(", ")}

With options, write two dashes first: npm run bench -- list --quick. A whole run takes up to 20
minutes and updates bench/results.json and docs/benchmarks.md; any other writes to bench/.output/.
`;

/** Fails with one line that names what makes no sense. */
export function readOptions(words: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...words],
    options: {
      quick: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
      contenders: { type: "string" },
      previous: { type: "string" },
    },
    allowPositionals: true,
  });
  const known = [...scenarios.map(({ name }) => name), ...partNames];
  const chosen = choose("There is no scenario", positionals, known);
  const named = values.contenders?.split(",").map((name) => name.trim()) ?? [];
  const contenders = choose("There is no contender", named, contenderNames);
  const isChosen = ({ name, isHeadline }: { name: string; isHeadline: boolean }) =>
    positionals.length > 0 ? chosen.has(name) : isHeadline || !values.quick;
  return {
    wantsHelp: values.help,
    timing: values.quick ? quickTiming : fullTiming,
    scenarios: new Set(scenarios.filter(isChosen).map(({ name }) => name)),
    parts: new Set(partNames.filter((name) => chosen.has(name))),
    contenders: new Set([...contenders, "plant-store"] as ContenderName[]),
    isWhole: !values.quick && positionals.length === 0 && named.length === 0,
    previousPath: values.previous,
  };
}

/** All of them if none is named. */
function choose(problem: string, named: readonly string[], known: readonly string[]): Set<string> {
  const unknown = named.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new Error(`${problem} ${JSON.stringify(unknown)}, only ${known.join(", ")}.`);
  }
  return new Set(named.length > 0 ? named : known);
}
