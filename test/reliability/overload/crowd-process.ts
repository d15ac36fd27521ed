/**
 * A crowd in a process of its own: its order on standard input, and on standard output a line break
 * when all is sent, and its report.
 */
import { writeSync } from "node:fs";
import { Crowd } from "./crowd.ts";

const crowd = new Crowd(JSON.parse(await Bun.stdin.text()));
const report = await crowd.run(() => writeSync(1, "\n"));
await Bun.write(Bun.stdout, JSON.stringify(report));
// Its connections are still open, and nobody waits for them.
process.exit(0);
