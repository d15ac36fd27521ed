/** `npm run prove kills [rounds] [seed]`: by default 2,000 ends of the service. */
import { joinTrials, prove } from "../proof.ts";
import { live } from "./life.ts";

const endsOfALife = 50;
/** A start leaves one of two processors idle most of the time. */
const livesAtOnce = 2;

await prove({
  name: "kills",
  trials: `rounds of ${livesAtOnce * endsOfALife} ends`,
  count: 20,
  async run(seed) {
    const lives = await Promise.all(
      Array.from({ length: livesAtOnce }, (_, index) =>
        live({ seed: seed * livesAtOnce + index, ends: endsOfALife }),
      ),
    );
    return joinTrials(lives);
  },
});
