/** How long everything is measured: the whole run stays under 15 minutes, a quick one under 2. */

export interface Timing {
  readonly warmUpSeconds: number;
  readonly roundSeconds: number;
  readonly rounds: number;
}

export interface Plan {
  readonly isQuick: boolean;
  readonly headline: Timing;
  readonly others: Timing;
  readonly growth: Timing;
  readonly growthPlants: readonly number[];
  readonly growthGardens: readonly number[];
  readonly slowDisk: Timing;
  readonly memoryCreates: number;
  readonly memoryConnections: number;
  readonly startRounds: number;
}

export const fullPlan: Plan = {
  isQuick: false,
  headline: { warmUpSeconds: 2, roundSeconds: 2, rounds: 5 },
  others: { warmUpSeconds: 1, roundSeconds: 2, rounds: 3 },
  growth: { warmUpSeconds: 2, roundSeconds: 2, rounds: 3 },
  growthPlants: [10, 10_000, 1_000_000, 10_000_000],
  growthGardens: [1, 1_000, 100_000],
  slowDisk: { warmUpSeconds: 1, roundSeconds: 3, rounds: 3 },
  memoryCreates: 1_000_000,
  memoryConnections: 5_000,
  startRounds: 15,
};

/** Less of everything; what it leaves out is said to be not measured. */
export const quickPlan: Plan = {
  isQuick: true,
  headline: { warmUpSeconds: 1, roundSeconds: 1, rounds: 2 },
  others: { warmUpSeconds: 1, roundSeconds: 1, rounds: 1 },
  growth: { warmUpSeconds: 1, roundSeconds: 1, rounds: 2 },
  growthPlants: [10, 1_000_000],
  growthGardens: [1, 1_000],
  slowDisk: { warmUpSeconds: 1, roundSeconds: 1, rounds: 2 },
  memoryCreates: 100_000,
  memoryConnections: 1_000,
  startRounds: 5,
};
