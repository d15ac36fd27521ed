/** The long form of a suite: many trials, with progress, total figures, and seeds to repeat. */

export interface Trial {
  /** What went wrong. Empty: the trial passed. */
  readonly faults: readonly string[];
  /** Added up over all trials, such as `{ created: 120, images: 40 }`. */
  readonly figures: Readonly<Record<string, number>>;
  /** Printed as it is, such as a row of a table. */
  readonly row?: string;
}

export interface Proof {
  /** What a trial is called, in the plural: "kills". */
  readonly trials: string;
  /** How many there are by default. */
  readonly count: number;
  /** Each trial is another case, so all of them run, whatever others showed. */
  readonly areAllDifferent?: boolean;
  /** How many run at the same time; by default one. */
  readonly atOnce?: number;
  readonly run: (seed: number) => Promise<Trial>;
  /** Cleans up, and returns the faults that only all trials together show. */
  readonly conclude?: () => Promise<readonly string[]>;
}

const progressEveryMs = 5_000;
/** More would only repeat the same, unless each trial is another case. */
const faultyTrialsMax = 3;

// Ctrl+C ends a proof like any exit, so that what it started is ended, too.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));

const say = (text: string) => process.stdout.write(`${text}\n`);

/** Runs `npm run prove NAME [count] [seed]`, prints the result, and ends the process. */
export async function prove(proof: Proof): Promise<never> {
  const { trials, areAllDifferent = false, atOnce = 1, run, conclude = async () => [] } = proof;
  const faultyMax = areAllDifferent ? Infinity : faultyTrialsMax;
  const [count = proof.count, firstSeed = Date.now() % 1_000_000] = readNumbers();
  const startedAtMs = performance.now();
  let total: Trial = { faults: [], figures: {} };
  let [done, faulty, nextSeed] = [0, 0, firstSeed];
  const sayProgress = () => {
    const figures = Object.entries(total.figures).map(
      ([figure, value]) => `; ${value.toLocaleString("en")} ${figure}`,
    );
    const spent = `${Math.round((performance.now() - startedAtMs) / 1_000)} s`;
    say(`${done}/${count} ${trials}, ${faulty} with faults${figures.join("")}; ${spent}`);
  };
  async function work(): Promise<void> {
    while (nextSeed < firstSeed + count && faulty < faultyMax) {
      const seed = nextSeed++;
      // A trial that throws is reported like any other.
      const trial: Trial = await run(seed).catch((error) => {
        const reason = error instanceof Error ? error.stack : error;
        return { faults: [`not finished: ${reason}`], figures: {} };
      });
      done++;
      total = joinTrials([total, trial]);
      if (trial.faults.length > 0) faulty++;
      if (trial.row !== undefined) say(trial.row);
      for (const fault of trial.faults) say(`seed ${seed}: ${fault}`);
    }
  }

  say(`${count} ${trials}, seeds from ${firstSeed}`);
  const progress = setInterval(sayProgress, progressEveryMs);
  await Promise.all(Array.from({ length: atOnce }, work));
  clearInterval(progress);
  sayProgress();
  const concluded = await conclude();
  for (const fault of concluded) say(fault);
  process.exit(faulty + concluded.length > 0 ? 1 : 0);
}

/** The numbers after the name. With anything else, nothing would be tried, and pass. */
export function readNumbers(): number[] {
  const texts = process.argv.slice(2);
  const [count = "1"] = texts;
  if (!texts.every((text) => /^\d+$/.test(text)) || Number(count) === 0) {
    throw new Error(`"${texts.join(" ")}" is not a count, and numbers after it.`);
  }
  return texts.map(Number);
}

/** Takes `--NAME VALUE` out of the arguments, so that only numbers are left. */
export function takeOption(name: string): string | undefined {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv.splice(at, 2)[1];
}

/** Several trials as one. */
export function joinTrials(trials: readonly Trial[]): Trial {
  const figures: Record<string, number> = {};
  for (const [figure, value] of trials.flatMap((trial) => Object.entries(trial.figures))) {
    figures[figure] = (figures[figure] ?? 0) + value;
  }
  return { faults: trials.flatMap(({ faults }) => faults), figures };
}
