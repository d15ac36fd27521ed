/**
 * The program with a bug that it survives: what counts the first commit throws. See
 * housekeeping.test.ts.
 */
import { Metrics } from "../../src/shared/metrics.ts";

const count = Metrics.prototype.countCommitWait;
Metrics.prototype.countCommitWait = () => {
  Metrics.prototype.countCommitWait = count;
  throw new Error("A bug.");
};
process.on("unhandledRejection", (error) => process.stderr.write(`${error}\n`));

await import("../../src/main.ts");
