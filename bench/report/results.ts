/** What a run found: the form of results.json. */
import type { ContenderName } from "../contenders/contender.ts";
import type { MemoryResult } from "../parts/memory.ts";
import type { Cell } from "../parts/side-by-side.ts";
import type { StartResults } from "../parts/start-up.ts";
import type { Timing } from "../scenarios.ts";
import type { Machine } from "./machine.ts";

export interface ContenderInfo {
  readonly name: ContenderName;
  readonly summary: string;
  readonly version: string;
}

export interface Results {
  readonly startedAt: string;
  readonly durationSeconds: number;
  readonly timing: Timing;
  readonly machine: Machine;
  readonly postgres?: string | undefined;
  readonly contenders: readonly ContenderInfo[];
  /** Medians only. */
  readonly cells: readonly Cell[];
  readonly memory?: MemoryResult | undefined;
  readonly start?: StartResults | undefined;
}

export function findCell(
  { cells }: Results,
  scenario: string,
  contender: ContenderName,
): Cell | undefined {
  return cells.find((cell) => cell.scenario === scenario && cell.contender === contender);
}
