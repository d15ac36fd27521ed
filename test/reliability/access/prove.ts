/**
 * `npm run prove:access -- [comparisons] [seed]`: times refusals on both engines, of new tokens,
 * of remembered ones and of absent plants; and by a program that checks the form of a token first,
 * which must be found out.
 */
import { changeProgram } from "../../changed-program.ts";
import { prove } from "../proof.ts";
import { type Subject, timeRefusals } from "./refusal-times.ts";
import { type Comparison, deviationMax } from "./timing.ts";

const rounds = 5_000;
/** What the broken one gives away shows at once. */
const brokenRounds = 200;

const cases = [
  { engine: "SQLite", subject: "first" },
  { engine: "SQLite", subject: "again" },
  { engine: "SQLite", subject: "absent" },
  { engine: "PostgreSQL", subject: "first" },
  { engine: "PostgreSQL", subject: "again" },
  { engine: "PostgreSQL", subject: "absent" },
] as const;

const titles: Readonly<Record<Subject, string>> = {
  first: "tokens at first sight",
  again: "tokens seen again",
  absent: "plants that are not the caller's",
};

function show(title: string, comparisons: readonly Comparison[]): void {
  const lines = comparisons.map(({ kind, medianUs, longerShare, deviation }) => {
    const share = `${(longerShare * 100).toFixed(1)} %`;
    return `  ${kind.padEnd(16)} ${medianUs.toFixed(1).padStart(9)} µs ${share.padStart(8)} ${deviation.toFixed(2).padStart(7)}`;
  });
  const heads = `  ${"".padEnd(16)}       median   longer  deviations`;
  process.stdout.write(`${[title, heads, ...lines].join("\n")}\n`);
}

const tellTales = (comparisons: readonly Comparison[]) =>
  comparisons.filter(({ deviation }) => Math.abs(deviation) > deviationMax);

async function compare(seed: number) {
  const { engine, subject } = cases[seed % cases.length] ?? cases[0];
  const comparisons = await timeRefusals({ engine, subject, rounds, seed });
  const title = `${engine}, ${titles[subject]}`;
  show(title, comparisons);
  return {
    faults: tellTales(comparisons).map(({ kind, deviation }) => {
      return `${title}: ${kind} is told from ${comparisons[0]?.kind}: ${deviation.toFixed(1)}`;
    }),
    figures: { refusals: comparisons.length * rounds },
  };
}

async function isBrokenOneFound(): Promise<boolean> {
  const file = "auth/authenticator.ts";
  const find =
    "async #find(token: string, traceparent?: string): Promise<Caller | PlantStoreError> {";
  using broken = changeProgram([
    { file, text: "import { hashToken }", by: "import { hashToken, isTokenForm }" },
    { file, text: find, by: `${find} if (!isTokenForm(token)) return tokenRefused;` },
  ]);
  const comparisons = await timeRefusals({
    engine: "SQLite",
    subject: "first",
    rounds: brokenRounds,
    seed: 1,
    program: broken.program,
  });
  show("a program that checks the form of a token first", comparisons);
  return tellTales(comparisons).some(({ kind }) => kind === "wrong checksum");
}

if (!(await isBrokenOneFound())) throw new Error("The broken program was not found out.");
await prove({ name: "access", trials: "comparisons", count: cases.length, run: compare });
