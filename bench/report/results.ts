/** Everything that a run found out: the form of results.json. */
import type { ContenderName } from "../contenders/contender.ts";
import type { GrowthResult } from "../parts/growth.ts";
import type { MemoryResult } from "../parts/memory.ts";
import type { PostgresResult } from "../parts/postgres.ts";
import type { ScenarioResult } from "../parts/side-by-side.ts";
import type { SlowDiskResult } from "../parts/slow-disk.ts";
import type { StartResult } from "../parts/start-up.ts";
import type { Plan } from "../plan.ts";
import type { Machine } from "./machine.ts";

export interface ContenderInfo {
  readonly name: ContenderName;
  readonly summary: string;
  readonly version: string;
}

export interface Skipped {
  readonly what: string;
  readonly why: string;
}

export interface Results {
  readonly startedAt: string;
  readonly durationSeconds: number;
  readonly plan: Plan;
  readonly machine: Machine;
  readonly contenders: readonly ContenderInfo[];
  readonly skipped: readonly Skipped[];
  readonly scenarios: readonly ScenarioResult[];
  readonly growth: readonly GrowthResult[];
  readonly slowDisk: readonly SlowDiskResult[];
  readonly memory: MemoryResult | undefined;
  readonly start: readonly StartResult[];
  readonly postgres: PostgresResult | undefined;
}
