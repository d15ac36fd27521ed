/**
 * `npm run prove:faults [strokes] [seed]`: each call of the program on its files fails, in every
 * way.
 */
import { prove } from "../proof.ts";
import { Strokes, strokesCount } from "./strokes.ts";

const strokes = new Strokes();

await prove({
  name: "faults",
  trials: "strokes",
  count: strokesCount,
  run: (seed) => strokes.run(seed),
});
