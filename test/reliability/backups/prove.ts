/** `npm run prove backups [drills] [seed]`: every pair of engines, and every loss. */
import { prove } from "../proof.ts";
import { drill, type Engine, losses } from "./drill.ts";

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
    const loss = losses[Math.floor(seed / pairs.length) % losses.length] ?? "all files";
    return drill(seed, { from, to, loss });
  },
});
