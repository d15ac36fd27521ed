/**
 * A consumer follows a garden's events, is disconnected at random, and resumes at any instance,
 * while clients write and instances are killed. It must see every event once, and in order.
 */
import { makeDice, spread } from "../../test/dice.ts";
import { waitFor } from "../../test/end-to-end/running-service.ts";
import { EventStreamReader, type SeenEvent } from "../../test/event-reader.ts";
import { auditGarden, readLog } from "../audit.ts";
import { Deployment, type Layout, type RestartingService } from "../deployment.ts";
import { makeSteadyCaller } from "../kept-connection.ts";
import { Ledger } from "../ledger.ts";
import type { Trial } from "../proof.ts";
import { Workload } from "../workload.ts";

const clients = 4;
/** Half of the connections end while they catch up, the others often wait for events. */
const shortMs = 20;
const longMs = 600;
const killEveryMs = 1_000;

export async function followEvents(
  layout: Layout,
  disconnects: number,
  seed: number,
): Promise<Trial> {
  const deployment = await Deployment.start(layout);
  const [{ token } = { token: "" }] = await deployment.takeGarden();
  const ledger = new Ledger();
  const dice = makeDice(spread(seed));
  const pick = () => deployment.instances[dice(deployment.instances.length)] as RestartingService;
  const caller = makeSteadyCaller({ pickPort: () => pick().port });
  const load = new Workload([{ token, call: caller.call }], ledger, { clients, seed });
  const seen: SeenEvent[] = [];
  let [disconnected, kills, isOver] = [0, 0, false];

  /** One connection, until it's cut off. */
  async function listen(forMs: number): Promise<void> {
    const { process } = pick();
    if (!process) return Bun.sleep(shortMs);
    const resuming = { accept: "text/event-stream", "last-event-id": String(seen.at(-1)?.id ?? 0) };
    const cut = new AbortController();
    const timer = setTimeout(() => cut.abort(), forMs);
    try {
      const init = { token, headers: resuming, signal: cut.signal };
      const response = await process.call("GET /events", init);
      if (response.status !== 200) ledger.fault(`a stream got ${response.status}`);
      disconnected++;
      const reader = new EventStreamReader(response);
      for (let event = await reader.next(); event; event = await reader.next()) seen.push(event);
    } catch {
      // It was cut off, or its instance was killed.
    } finally {
      clearTimeout(timer);
    }
  }

  async function killInstances(): Promise<void> {
    for (; !isOver; kills++) {
      await deployment.kill(dice(deployment.instances.length));
      await Bun.sleep(dice(2 * killEveryMs));
    }
  }

  const killing = killInstances();
  while (disconnected < disconnects) await listen(dice(2) === 0 ? dice(shortMs) : dice(longMs));
  isOver = true;
  await Promise.all([load.stop(), killing]);
  const log = await readLog(caller, token);
  await waitFor(async () => {
    await listen(longMs);
    return (seen.at(-1)?.id ?? 0) >= log.length || undefined;
  });
  const faults = await auditGarden(caller, token, ledger);
  faults.push(...(await deployment.stop()));
  const shown = seen.map(({ id, type, data }) => `${id} ${type} ${data.user} ${data.plant.tag}`);
  const logged = log.map(({ seq, type, user, plant }) => `${seq} ${type} ${user} ${plant.tag}`);
  const at = shown.findIndex((event, index) => event !== logged[index]);
  if (at >= 0) faults.push(`after ${logged[at - 1]} the consumer saw ${shown[at]}`);
  return { faults, figures: { events: log.length, disconnects: disconnected, kills } };
}
