/**
 * The long form of a suite: many trials in a row, with progress, their figures added up, and any of
 * them again by its seed. It knows nothing of what is tried.
 */

export interface Trial {
  /** What must not have happened, in words that say where to look. Empty: the trial passed. */
  readonly faults: readonly string[];
  /** What was done and seen, added up over all trials: `{ created: 120, images: 40 }`. */
  readonly figures: Readonly<Record<string, number>>;
}

export interface Proof {
  /** As in `npm run prove:NAME`. */
  readonly name: string;
  /** What one trial is called, in the plural: "kills". */
  readonly trials: string;
  /** How many there are unless the command says another number. */
  readonly count: number;
  /** How many run at the same time; one, unless it is given. */
  readonly atOnce?: number;
  readonly run: (seed: number) => Promise<Trial>;
  /** What only all trials together show, said at the end. */
  readonly conclude?: () => Promise<Conclusion>;
}

export interface Conclusion {
  readonly text: string;
  readonly isFault: boolean;
}

const progressEveryMs = 5_000;
/** More would say the same again. */
const faultyTrialsMax = 3;

/** Runs `npm run prove:NAME -- [count] [seed]`, says what came of it, and ends the process. */
export async function prove(proof: Proof): Promise<never> {
  const { name, trials, count: usual, atOnce = 1, run, conclude } = proof;
  const [count = usual, firstSeed = Date.now() % 1_000_000] = readNumbers();
  const startedAtMs = performance.now();
  const figures: Record<string, number> = {};
  const faulty: number[] = [];
  let done = 0;
  let saidAtMs = startedAtMs;
  const progress = () => `${done}/${count} ${trials}, ${faulty.length} with faults${list(figures)}`;

  say(`${count} ${trials}, seeds from ${firstSeed}`);
  let nextSeed = firstSeed;
  async function work(): Promise<void> {
    while (nextSeed < firstSeed + count && faulty.length < faultyTrialsMax) {
      const seed = nextSeed++;
      take(seed, await run(seed).catch(failedTrial));
    }
  }
  function take(seed: number, trial: Trial): void {
    done++;
    addUp(trial, figures);
    if (trial.faults.length > 0) {
      faulty.push(seed);
      for (const fault of trial.faults) say(`seed ${seed}: ${fault}`);
    }
    if (performance.now() - saidAtMs >= progressEveryMs) {
      say(progress());
      saidAtMs = performance.now();
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work));
  for (const seed of faulty) say(`again: npm run prove:${name} -- 1 ${seed}`);
  say(`${progress()}; ${Math.round((performance.now() - startedAtMs) / 1_000)} s`);
  const conclusion = await conclude?.();
  if (conclusion) say(conclusion.text);
  process.exit(faulty.length > 0 || conclusion?.isFault ? 1 : 0);
}

/** The numbers behind `--`. With a count of something else nothing would be tried, and pass. */
export function readNumbers(): number[] {
  const texts = process.argv.slice(2);
  const [count = "1"] = texts;
  if (!texts.every((text) => /^\d+$/.test(text)) || Number(count) === 0) {
    throw new Error(`"${texts.join(" ")}" is not how many, and numbers behind it.`);
  }
  return texts.map(Number);
}

/** Several trials as one. */
export function joinTrials(trials: readonly Trial[]): Trial {
  const figures: Record<string, number> = {};
  for (const trial of trials) addUp(trial, figures);
  return { faults: trials.flatMap(({ faults }) => faults), figures };
}

function addUp(trial: Trial, figures: Record<string, number>): void {
  for (const [figure, value] of Object.entries(trial.figures)) {
    figures[figure] = (figures[figure] ?? 0) + value;
  }
}

/** Also of one that could not be finished the seed is told, and what others found. */
function failedTrial(error: unknown): Trial {
  return { faults: [`not finished: ${error instanceof Error ? error.stack : error}`], figures: {} };
}

function list(figures: Readonly<Record<string, number>>): string {
  return Object.entries(figures)
    .map(([figure, value]) => `; ${value.toLocaleString("en")} ${figure}`)
    .join("");
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
