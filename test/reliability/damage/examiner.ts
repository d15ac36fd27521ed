/** The process that opens damaged stores, so that one that crashes or hangs it is noticed. */
import { examine } from "./examination.ts";
import { makeSoundStore } from "./sound-store.ts";

const sound = await makeSoundStore();

process.on("message", async (seed: number) => {
  process.send?.(await examine(sound, seed));
});
