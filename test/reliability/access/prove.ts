/**
 * `npm run prove:access -- [comparisons] [seed]`: times refusals on both engines, as new tokens and
 * as remembered ones; and by a program that checks the form of a token first, which must be found
 * out.
 */
import { changeProgram } from "../../changed-program.ts";
import { prove } from "../proof.ts";
import { timeRefusals } from "./refusal-times.ts";
import { type Comparison, deviationMax } from "./timing.ts";

const rounds = 5_000;
/** What the broken one gives away shows at once. */
const brokenRounds = 200;

const cases = [
  { engine: "SQLite", sight: "first" },
  { engine: "SQLite", sight: "again" },
  { engine: "PostgreSQL", sight: "first" },
  { engine: "PostgreSQL", sight: "again" },
] as const;

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
  const { engine, sight } = cases[seed % cases.length] ?? cases[0];
  const comparisons = await timeRefusals({ engine, sight, rounds, seed });
  show(
    `${engine}, ${sight === "first" ? "tokens at first sight" : "tokens seen again"}`,
    comparisons,
  );
  return {
    faults: tellTales(comparisons).map(({ kind, deviation }) => {
      return `${kind} is told from unknown on ${engine}, ${sight} sight: ${deviation.toFixed(1)}`;
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
    sight: "first",
    rounds: brokenRounds,
    seed: 1,
    program: broken.program,
  });
  show("a program that checks the form of a token first", comparisons);
  return tellTales(comparisons).some(({ kind }) => kind === "wrong checksum");
}

if (!(await isBrokenOneFound())) throw new Error("The broken program was not found out.");
await prove({ name: "access", trials: "comparisons", count: cases.length, run: compare });
