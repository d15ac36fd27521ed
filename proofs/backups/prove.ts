/** `npm run prove backups [drills] [seed]`: every pair of engines, and every loss. */
import { prove } from "../proof.ts";
import { type Case, drill, losses } from "./drill.ts";

const engines = ["sqlite", "postgres"] as const;
const cases = losses.flatMap((loss) =>
  engines.flatMap((from) => engines.map((to): Case => ({ from, to, loss }))),
);

await prove({
  name: "backups",
  trials: "drills",
  count: 100,
  run: (seed) => drill(seed, cases[seed % cases.length] as Case),
});
