/** `npm run prove`: the long form of every suite, and at the end the last line of each. */
import manifest from "../../package.json" with { type: "json" };

/** The soak is last, because it takes longest. */
const suites = Object.keys(manifest.scripts)
  .filter((name) => name.startsWith("prove:"))
  .toSorted((one, other) => Number(one === "prove:soak") - Number(other === "prove:soak"));

const results: string[] = [];
let isBroken = false;
for (const suite of suites) {
  process.stdout.write(`\n${suite}\n`);
  const child = Bun.spawn(["npm", "run", "-s", suite], { stdout: "pipe", stderr: "inherit" });
  let last = "";
  let rest = "";
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    process.stdout.write(text);
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    last = lines.findLast((line) => line.trim() !== "") ?? last;
  }
  const exitCode = await child.exited;
  if (exitCode !== 0) isBroken = true;
  results.push(`${exitCode === 0 ? "ok   " : "fails"} ${suite}: ${last}`);
}
process.stdout.write(`\n${results.join("\n")}\n`);
process.exit(isBroken ? 1 : 0);
