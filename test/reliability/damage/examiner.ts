/**
 * The process that opens damaged stores, so that one that crashes or hangs it is noticed from
 * outside.
 */
import { join } from "node:path";
import { examine, type Parts } from "./examination.ts";
import { makeSoundStore } from "./sound-store.ts";

const [source = ""] = process.argv.slice(2);
const [{ openSqlite }, { assemble }]: [Pick<Parts, "openSqlite">, Pick<Parts, "assemble">] =
  await Promise.all([
    import(join(source, "storage/sqlite/engine.ts")),
    import(join(source, "listening/assembly.ts")),
  ]);
const sound = await makeSoundStore();

process.on("message", async (seed: number) => {
  process.send?.(await examine({ openSqlite, assemble }, sound, seed));
});
