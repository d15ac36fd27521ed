/**
 * `plantstore events --forward` is killed again and again while its receiver fails, responds late
 * or is away. Every event must arrive, signed, and for the first time in order. Run as a program,
 * this is the forwarder itself, with short pauses.
 */
import { join } from "node:path";
import type { Server } from "bun";
import { Webhook } from "standardwebhooks";
import { PlantStore } from "../../client/plant-store.ts";
import { pause } from "../../client/send.ts";
import { forwardEvents, readTarget } from "../../src/cli/forward-events.ts";
import { openTerminal } from "../../src/cli/terminal.ts";
import { makeDice, spread } from "../../test/dice.ts";
import { startService, waitFor } from "../../test/end-to-end/running-service.ts";
import { makeTemporaryFolder } from "../../test/temporary-folder.ts";
import type { Trial } from "../proof.ts";

const timeoutMs = 200;
const pauseMsMax = 20;
/** Of so many requests, one fails. */
const failsEvery = 5;
/** Of so many failures, one is a late response. */
const lateEvery = 25;
/** After so many kills, the receiver is away for a while. */
const awayEvery = 4;
const awayMs = 300;
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
  const store = new PlantStore({ url: service.url, token: service.token });
  const dice = makeDice(spread(seed));
  const webhook = new Webhook(secret);
  const faults: string[] = [];
  /** The events that the receiver took, in order. */
  const taken: number[] = [];
  let [requests, failed, killed, isOver] = [0, 0, 0, false];
  let child: Bun.Subprocess | undefined;

  async function receive(request: Request): Promise<Response> {
    const body = await request.text();
    const event = webhook.verify(body, Object.fromEntries(request.headers)) as { seq: number };
    requests++;
    if (killed < kills && taken.length >= ((killed + 0.5) * events) / kills) {
      killed++;
      const victim = child;
      setTimeout(() => victim?.kill("SIGKILL"), dice(killMsMax));
      if (killed % awayEvery === 0) goAway();
    }
    if (requests % failsEvery === 0) {
      failed++;
      if (failed % lateEvery !== 0) return new Response(null, { status: 500 });
      // It takes the event, but the forwarder can't know that.
      taken.push(event.seq);
      await Bun.sleep(2 * timeoutMs);
      return new Response();
    }
    taken.push(event.seq);
    return new Response(null, { status: 204 });
  }

  const listen = (port: number) =>
    Bun.serve({
      port,
      hostname: "127.0.0.1",
      fetch: receive,
      error(error) {
        faults.push(String(error));
        return new Response(null, { status: 400 });
      },
    });
  let receiver: Server<undefined> = listen(0);
  const port = receiver.port as number;
  function goAway(): void {
    receiver.stop(true);
    setTimeout(() => {
      receiver = listen(port);
    }, awayMs);
  }

  async function keepForwarding(): Promise<void> {
    const state = join(folder.path, "state");
    while (!isOver) {
      child = Bun.spawn([process.execPath, import.meta.path, `http://127.0.0.1:${port}/`, state], {
        env: {
          ...process.env,
          PLANTSTORE_URL: service.url,
          PLANTSTORE_TOKEN: service.token,
          PLANTSTORE_WEBHOOK_SECRET: secret,
        },
        stdout: "ignore",
        stderr: "ignore",
      });
      const code = await child.exited;
      if (child.signalCode !== "SIGKILL" && !isOver) {
        faults.push(`it ended with ${code}`);
        return;
      }
    }
  }

  // Half of the events are there before it starts, and half come while it runs.
  const drafts = Array.from({ length: events / 2 }, () => ({ name: "Fern" }));
  await store.createMany(drafts);
  const forwarding = keepForwarding();
  await store.createMany(drafts);
  const isDone = () => taken.includes(events) || undefined;
  await waitFor(isDone, () => faults[0] ?? false, 60_000 + 100 * events).catch(({ message }) =>
    faults.push(message),
  );
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
  return { faults, figures: { events: firsts.length, kills: killed, failed, twice } };
}

if (import.meta.main) {
  const [url = "", state = ""] = process.argv.slice(2);
  const terminal = openTerminal();
  const { PLANTSTORE_URL = "", PLANTSTORE_TOKEN = "" } = process.env;
  const store = new PlantStore({ url: PLANTSTORE_URL, token: PLANTSTORE_TOKEN });
  const call = { words: [], flags: { forward: url, state, from: "start" }, terminal };
  const { garden, lastEvent = 0 } = await store.me();
  const forwarding = { ...readTarget(call), garden, lastEvent, show: () => {} };
  await forwardEvents(store, call, forwarding, {
    pause: (durationMs, signal) => pause(Math.min(durationMs, pauseMsMax), signal),
    timeoutMs,
  });
}
