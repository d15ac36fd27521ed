/** `npm run prove:damage [images] [seed]`: the service on thousands of damaged files. */
import { prove } from "../proof.ts";
import { ExaminerProcess } from "./examiner-process.ts";

const examiner = new ExaminerProcess();

await prove({
  name: "damage",
  trials: "images",
  count: 10_000,
  run: (seed) => examiner.examine(seed),
});
