/**
 * `plantstore events --forward`, with short pauses, is killed again and again while its receiver
 * fails. Every event must arrive, signed, and for the first time in order.
 */
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { PlantStore } from "../../client/plant-store.ts";
import { changeProgram } from "../../testing/changed-program.ts";
import { makeDice, spread } from "../../testing/dice.ts";
import { readOutput, spawnProgram, startService, waitFor } from "../../testing/running-service.ts";
import { makeTemporaryFolder } from "../../testing/temporary-folder.ts";
import type { Trial } from "../proof.ts";

const shortPauses = ["cli/forward-events.ts", "1_000 * 2 ** tries", "20"] as const;
/** Of so many requests, one fails. */
const failsEvery = 5;
/** From a request on, so that some deaths come before its response and some after. */
const killMsMax = 6;
const secret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;

export async function forwardUnderKills(
  events: number,
  kills: number,
  seed: number,
): Promise<Trial> {
  await using service = await startService();
  using folder = makeTemporaryFolder();
  using changed = changeProgram(shortPauses);
  const store = new PlantStore({ url: service.url, token: service.token });
  const dice = makeDice(spread(seed));
  const webhook = new Webhook(secret);
  const faults: string[] = [];
  /** The events that the receiver took, in order. */
  const taken: number[] = [];
  let [requests, killed, isOver] = [0, 0, false];
  let child: Bun.Subprocess | undefined;

  async function receive(request: Request): Promise<Response> {
    const body = await request.text();
    const event = webhook.verify(body, Object.fromEntries(request.headers)) as { seq: number };
    requests++;
    if (killed < kills && taken.length >= ((killed + 0.5) * events) / kills) {
      killed++;
      const victim = child;
      setTimeout(() => victim?.kill("SIGKILL"), dice(killMsMax));
    }
    if (requests % failsEvery === 0) return new Response(null, { status: 500 });
    taken.push(event.seq);
    return new Response(null, { status: 204 });
  }

  const receiver = Bun.serve({
    port: 0,
    fetch: receive,
    error(error) {
      faults.push(String(error));
      return new Response(null, { status: 400 });
    },
  });

  async function keepForwarding(): Promise<void> {
    const state = join(folder.path, "state");
    const command = ["events", "--forward", receiver.url.href, "--state", state, "--from", "start"];
    const env = {
      PLANTSTORE_URL: service.url,
      PLANTSTORE_TOKEN: service.token,
      PLANTSTORE_WEBHOOK_SECRET: secret,
    };
    while (!isOver && faults.length === 0) {
      child = spawnProgram(command, env, changed.program);
      const { exitCode, errors } = await readOutput(child);
      if (child.signalCode !== "SIGKILL" && !isOver) faults.push(`${exitCode}: ${errors}`);
    }
  }

  // Half of the events are there before it starts, and half come while it runs.
  const drafts = Array.from({ length: events / 2 }, () => ({ name: "Fern" }));
  await store.createMany(drafts);
  const forwarding = keepForwarding();
  await store.createMany(drafts);
  const isDone = () => taken.includes(events) || faults.length > 0 || undefined;
  await waitFor(isDone, undefined, 60_000 + 100 * events);
  isOver = true;
  child?.kill("SIGTERM");
  await forwarding;
  receiver.stop(true);

  const firsts = [...new Set(taken)];
  const wrong = firsts.findIndex((seq, index) => seq !== index + 1);
  if (wrong >= 0) faults.push(`event ${firsts[wrong]} came first after ${firsts[wrong - 1]}`);
  if (firsts.length !== events) faults.push(`${firsts.length} of ${events} arrived`);
  if (killed !== kills) faults.push(`${killed} of ${kills} kills`);
  const twice = taken.length - firsts.length;
  return { faults, figures: { events: firsts.length, kills: killed, ...(twice && { twice }) } };
}
