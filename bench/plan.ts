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
  readonly postgres: Timing;
  /** Whether the peer's readers are measured too, and not only its writers. */
  readonly comparesReaders: boolean;
  readonly memoryCreates: number;
  readonly memoryConnections: number;
  readonly startRounds: number;
}

export const fullPlan: Plan = {
  isQuick: false,
  headline: { warmUpSeconds: 1, roundSeconds: 2, rounds: 3 },
  others: { warmUpSeconds: 1, roundSeconds: 2, rounds: 2 },
  growth: { warmUpSeconds: 1, roundSeconds: 2, rounds: 3 },
  growthPlants: [10, 10_000, 1_000_000, 10_000_000],
  growthGardens: [1, 1_000, 100_000],
  slowDisk: { warmUpSeconds: 1, roundSeconds: 2, rounds: 3 },
  postgres: { warmUpSeconds: 1, roundSeconds: 2, rounds: 3 },
  comparesReaders: true,
  memoryCreates: 1_000_000,
  memoryConnections: 5_000,
  startRounds: 15,
};

/** Less of everything; what it leaves out is said to be not measured. */
export const quickPlan: Plan = {
  isQuick: true,
  headline: { warmUpSeconds: 1, roundSeconds: 1, rounds: 2 },
  others: { warmUpSeconds: 1, roundSeconds: 1, rounds: 1 },
  growth: { warmUpSeconds: 1, roundSeconds: 1, rounds: 1 },
  growthPlants: [10, 1_000_000],
  growthGardens: [],
  slowDisk: { warmUpSeconds: 1, roundSeconds: 1, rounds: 1 },
  postgres: { warmUpSeconds: 1, roundSeconds: 1, rounds: 1 },
  comparesReaders: false,
  memoryCreates: 20_000,
  memoryConnections: 1_000,
  startRounds: 5,
};
