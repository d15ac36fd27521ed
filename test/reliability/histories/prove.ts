/**
 * `npm run prove:histories -- [count] [seed]`: that many histories on each engine, with and without
 * trouble. Without a count it first shows that it finds every flaw.
 */
import { joinTrials, prove } from "../proof.ts";
import { findFlaw, flaws } from "./flaws.ts";
import { Suite } from "./suite.ts";

const say = (text: string) => process.stdout.write(`${text}\n`);

if (process.argv.length === 2) {
  for (const [name, flaw] of Object.entries(flaws)) {
    const [fault] = await findFlaw(flaw);
    say(`${fault ? "found" : "NOT FOUND"}: ${name}\n${fault ?? ""}`);
    if (!fault) process.exit(1);
  }
}

const suites = [await Suite.start("sqlite"), await Suite.start("postgres")];
process.on("exit", () => {
  for (const suite of suites) suite.abandon();
});

await prove({
  name: "histories",
  trials: "histories on each engine",
  count: 1_000,
  // Each in gardens of its own, so that commits hold writes to several.
  atOnce: 8,
  run: async (seed) => joinTrials(await Promise.all(suites.map((suite) => suite.run(seed)))),
});
