/** How Plant Store's cost grows with the number of plants in a garden, and of gardens. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { firstPlantNumber, user } from "../contenders/contender.ts";
import { seedGardens } from "../contenders/many-gardens.ts";
import { plantStore, seedGarden } from "../contenders/plant-store.ts";
import type { Share } from "../load/action.ts";
import { showProgress } from "../output.ts";
import type { BenchContext } from "./bench-context.ts";
import {
  describeGrowthActions,
  type GrowthAction,
  plantsPerGarden,
  rotateTokens,
} from "./growth-actions.ts";
import { medianRound } from "./median.ts";
import { type Round, Seat } from "./seat.ts";

export interface GrowthResult {
  readonly of: "plants" | "gardens";
  readonly size: number;
  readonly action: GrowthAction;
  readonly median: Round;
  readonly rounds: readonly Round[];
  /** What an answer costs, as a multiple of what it costs at the smallest size. */
  readonly costRatio: number;
}

type Entry = {
  readonly size: number;
  readonly seat: Seat;
  readonly shares: ReadonlyMap<GrowthAction, readonly Share[]>;
};

const connections = 64;

export async function measureGrowthOfPlants(context: BenchContext): Promise<GrowthResult[]> {
  return measureSizes(context, "plants", context.plan.growthPlants, async (size) => {
    const { directory, credential } = await context.templates.copy(plantStore);
    seedGarden(directory, user, size);
    const shares = describeGrowthActions(credential, firstPlantNumber, size);
    return { size, seat: await Seat.start(plantStore, directory), shares };
  });
}

export async function measureGrowthOfGardens(context: BenchContext): Promise<GrowthResult[]> {
  return measureSizes(context, "gardens", context.plan.growthGardens, async (size) => {
    const { directory } = await context.templates.copy(plantStore);
    const tokens = seedGardens(directory, size, plantsPerGarden);
    const tokensPath = join(directory, "tokens.txt");
    writeFileSync(tokensPath, `${tokens.join("\n")}\n`);
    return {
      size,
      seat: await Seat.start(plantStore, directory),
      shares: rotateTokens(tokensPath),
    };
  });
}

async function measureSizes(
  context: BenchContext,
  of: GrowthResult["of"],
  sizes: readonly number[],
  takeSeat: (size: number) => Promise<Entry>,
): Promise<GrowthResult[]> {
  const entries: Entry[] = [];
  const results: GrowthResult[] = [];
  try {
    for (const size of sizes) {
      showProgress(`growth: ${size.toLocaleString("en")} ${of}, preparing`);
      const entry = await takeSeat(size);
      entries.push(entry);
      await entry.seat.rest();
    }
    for (const action of entries[0]?.shares.keys() ?? []) {
      results.push(...(await measureAction(context, of, entries, action)));
    }
  } finally {
    for (const { seat } of entries) {
      await seat.child.stop();
      context.workspace.discard(seat.directory);
    }
  }
  return results;
}

async function measureAction(
  context: BenchContext,
  of: GrowthResult["of"],
  entries: readonly Entry[],
  action: GrowthAction,
): Promise<GrowthResult[]> {
  const { rounds, roundSeconds, warmUpSeconds } = context.plan.growth;
  const measured = entries.map(() => [] as Round[]);
  // Lists come before creates, so a garden has its size until those begin. Round 0 warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const [index, { size, seat, shares }] of entries.entries()) {
      showProgress(`growth: ${action}, ${size.toLocaleString("en")} ${of}, round ${round}`);
      await seat.wake();
      const mix = shares.get(action) ?? [];
      if (round === 0) await seat.check(mix);
      const durationSeconds = round === 0 ? warmUpSeconds : roundSeconds;
      const figures = await seat.drive(mix, { connections, durationSeconds });
      if (round > 0) measured[index]?.push(figures);
      await seat.rest();
    }
  }
  const medians = measured.map(medianRound);
  const smallest = medians[0]?.answersPerSecond ?? Number.NaN;
  return entries.map(({ size }, index) => {
    const median = medians[index] as Round;
    const costRatio = smallest / median.answersPerSecond;
    return { of, size, action, median, rounds: measured[index] ?? [], costRatio };
  });
}
