/** A crowd in a process of its own: its order on standard input, its report on standard output. */
import { Crowd } from "./crowd.ts";

const report = await new Crowd(JSON.parse(await Bun.stdin.text())).run();
await Bun.write(Bun.stdout, JSON.stringify(report));
// Its connections are still open, and nobody waits for them.
process.exit(0);
