/**
 * A crowd in its own process. Reads its order from standard input; writes a line break when
 * everything was sent, and then its report.
 */
import { writeSync } from "node:fs";
import { Crowd } from "./crowd.ts";

const crowd = new Crowd(JSON.parse(await Bun.stdin.text()));
const report = await crowd.run(() => writeSync(1, "\n"));
await Bun.write(Bun.stdout, JSON.stringify(report));
// Without waiting for open connections.
process.exit(0);
