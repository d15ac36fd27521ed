/**
 * `npm run prove:backups -- [drills] [seed]`: many drills, on every pair of engines and in every
 * loss.
 */
import { prove } from "../proof.ts";
import { drill } from "./drill.ts";
import { type Engine, losses } from "./loaded-store.ts";

const pairs: readonly (readonly [from: Engine, to: Engine])[] = [
  ["SQLite", "SQLite"],
  ["SQLite", "PostgreSQL"],
  ["PostgreSQL", "SQLite"],
  ["PostgreSQL", "PostgreSQL"],
];

await prove({
  name: "backups",
  trials: "drills",
  count: 100,
  run(seed) {
    const [from, to] = pairs[seed % pairs.length] ?? ["SQLite", "SQLite"];
    const loss = losses[Math.floor(seed / pairs.length) % losses.length] ?? "without a trace";
    return drill(seed, { from, to, loss });
  },
});
