/**
 * `npm run prove:migrations [rounds]`: many instances start at once on an empty database, many
 * times.
 */
import { startAtOnce } from "./simultaneous-start.ts";

const rounds = Number(process.argv[2] ?? 20);
let faultsCount = 0;
for (let round = 1; round <= rounds; round++) {
  const faults = await startAtOnce();
  faultsCount += faults.length;
  process.stdout.write(
    `${[`${round}/${rounds}: ${faults.length} faults`, ...faults].join("\n")}\n`,
  );
}
process.stdout.write(`${rounds} rounds, ${faultsCount} faults\n`);
process.exit(faultsCount > 0 ? 1 : 0);
