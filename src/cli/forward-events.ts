/**
 * `plantstore events --forward`: sends each event of a garden to a URL, in order and at least once,
 * as Standard Webhooks (https://www.standardwebhooks.com).
 *
 *     an event ──▶ POST, until a 2xx ──▶ its number is durable in the state file ──▶ the next event
 */
import { createHmac } from "node:crypto";
import { existsSync, readFileSync, writeSync } from "node:fs";
import type { PlantEvent, PlantStore } from "../../client/plant-store.ts";
import { hasCode } from "../../client/problem-error.ts";
import { pause } from "../../client/send.ts";
import { renderDraft } from "../../client/wire-text.ts";
import { choice, quoteText } from "../shared/config.ts";
import { describeSystemError, mapFileError } from "../shared/system-errors.ts";
import { renderCount, renderDuration, showSafely } from "../shared/text.ts";
import { replaceDurably } from "../storage/durable-file.ts";
import { CliError, usageError } from "./cli-error.ts";
import { type Call, isForPeople, readFlag, textFlag } from "./command.ts";
import { listenForStop } from "./stop-signals.ts";
import type { Terminal } from "./terminal.ts";

export const secretVariable = "PLANTSTORE_WEBHOOK_SECRET";
const secretForm = /^whsec_([A-Za-z\d+/]+={0,2})$/;
/** What Standard Webhooks allows. */
const [keyBytesMin, keyBytesMax] = [24, 64];
const pauseMsMax = 300_000;

interface Target {
  readonly url: string;
  readonly key: Buffer;
  readonly statePath: string;
  /** Where to begin without a state file: at the oldest event that is kept, or now. */
  readonly from: "start" | "now";
}

interface Forwarding extends Target {
  readonly garden: string;
  readonly lastEvent: number;
  /** Shows at a terminal what was sent. */
  readonly show: (events: readonly PlantEvent[]) => void;
}

/** Tests don't wait. */
export interface Timing {
  readonly pause: (durationMs: number, signal: AbortSignal) => Promise<void>;
  /** How long a receiver has to respond. */
  readonly timeoutMs: number;
}

/** Throws a `CliError` if the flags or the secret aren't valid. */
export function readTarget(call: Call): Target {
  const url = textFlag(call, "forward") ?? "";
  const parsed = URL.parse(url);
  if (!parsed || !/^https?:$/.test(parsed.protocol) || parsed.username + parsed.password !== "") {
    throw usageError(
      `--forward must be a URL with http:// or https://, without a user or a password, not ${quoteText(url)}.`,
    );
  }
  const statePath = textFlag(call, "state") ?? "";
  if (statePath === "") {
    throw usageError("--forward needs --state FILE, where it keeps its position.");
  }
  const from = readFlag(call, "from", choice("now", "start")) ?? "now";
  return { url: parsed.href, key: readKey(call), statePath, from };
}

/** Never shows the secret. */
function readKey({ terminal }: Call): Buffer {
  const secret = terminal.env[secretVariable]?.trim() ?? "";
  const key = Buffer.from(secretForm.exec(secret)?.[1] ?? "", "base64");
  if (key.length >= keyBytesMin && key.length <= keyBytesMax) return key;
  throw usageError(
    `${secretVariable} ${secret === "" ? "is missing" : "is not valid"}: it must be whsec_ and ` +
      `${keyBytesMin} to ${keyBytesMax} bytes in base64, such as whsec_$(openssl rand -base64 32).`,
  );
}

/** Goes on until a signal stops it. Throws a `CliError` if it can't go on. */
export async function forwardEvents(
  store: PlantStore,
  call: Call,
  forwarding: Forwarding,
  timing: Timing = { pause: (ms, signal) => pause(ms, signal), timeoutMs: 15_000 },
): Promise<undefined> {
  let position = readState(forwarding) ?? (await findStart(store, forwarding));
  // Even before the first event: what happens while this doesn't run counts, too.
  await writeState(forwarding, position);
  const { terminal } = call;
  const isWatched = isForPeople(call);
  const waiting = renderCount(Math.max(0, forwarding.lastEvent - position), "event");
  if (isWatched) terminal.say(`Sending until Ctrl+C. Waiting after event ${position}: ${waiting}.`);
  using listening = listenForStop();
  const signal = listening.stop.asked;
  try {
    for await (const event of store.events({ after: position, signal })) {
      const delivery = await deliver(event, forwarding, terminal, timing, signal);
      position = event.seq;
      await writeState(forwarding, position);
      if (isWatched) forwarding.show([event]);
      else terminal.out(`${JSON.stringify(delivery)}\n`);
      if (signal.aborted) break;
    }
  } catch (error) {
    if (hasCode(error, "gone")) {
      throw new CliError(
        `The events after ${position} are no longer kept, or the service has other ones since a ` +
          `restore, so some can't be sent. Delete ${forwarding.statePath} to start over.`,
      );
    }
    if (!(signal.aborted && error === signal.reason)) throw error;
  }
  return undefined;
}

async function findStart(store: PlantStore, { from, lastEvent }: Forwarding): Promise<number> {
  const oldest = from === "start" ? (await store.eventPage({ limit: 1 })).events[0] : undefined;
  return oldest ? oldest.seq - 1 : lastEvent;
}

/** Absent if there is no state file. Throws a `CliError` if it is of another garden or URL. */
function readState({ garden, url, statePath }: Forwarding): number | undefined {
  if (!existsSync(statePath)) return undefined;
  const state = parseState(statePath);
  if (!Number.isSafeInteger(state.seq)) {
    throw usageError(`${statePath} is not a state file of plantstore events --forward.`);
  }
  if (state.garden === garden && state.url === url) return state.seq;
  // The URL may hold a secret.
  const other = state.garden === garden ? "URL" : `garden, "${state.garden}"`;
  throw usageError(
    showSafely(`${statePath} belongs to another ${other}. Use a --state FILE for each.`),
  );
}

function parseState(path: string): { garden?: string; url?: string; seq?: number } {
  try {
    return JSON.parse(readFileSync(path, "utf8")) ?? {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw mapFileError("read", path, error);
  }
}

async function writeState({ garden, url, statePath }: Forwarding, seq: number): Promise<void> {
  try {
    await replaceDurably(statePath, async (descriptor) => {
      writeSync(descriptor, `${JSON.stringify({ garden, url, seq })}\n`);
    });
  } catch (error) {
    throw mapFileError("write", statePath, error);
  }
}

interface Delivery {
  readonly seq: number;
  /** The `webhook-id`. */
  readonly id: string;
  readonly status: number;
  readonly tries: number;
}

/** Tries until a receiver takes it, or throws the signal's reason between two tries. */
async function deliver(
  event: PlantEvent,
  { garden, url, key }: Forwarding,
  terminal: Terminal,
  { pause, timeoutMs }: Timing,
  signal: AbortSignal,
): Promise<Delivery> {
  const body = renderEvent(event);
  // Without dots, which separate the parts of what is signed, and in ASCII.
  const id = `${encodeURIComponent(garden).replaceAll(".", "%2E")}_${event.seq}`;
  for (let tries = 1; ; tries++) {
    const result = await post(url, body, sign(id, body, key), timeoutMs);
    if (typeof result === "number" && result >= 200 && result < 300) {
      return { seq: event.seq, id, status: result, tries };
    }
    if (result === 410) {
      throw new CliError(
        `The receiver responded to event ${event.seq} with 410: it wants no more events.`,
      );
    }
    // At first 1 to 2 seconds.
    const stepMs = Math.min(pauseMsMax, 1_000 * 2 ** tries);
    const pauseMs = stepMs * (0.5 + Math.random() / 2);
    const reason = typeof result === "number" ? `the response is ${result}` : result;
    const next = `Next try in ${renderDuration(pauseMs)}.`;
    if (!signal.aborted) {
      terminal.say(showSafely(`Event ${event.seq} was not taken: ${reason}. ${next}`));
    }
    await pause(pauseMs, signal);
  }
}

/** As the service sends it, with all digits of the id. */
export function renderEvent({ plant, ...event }: PlantEvent): string {
  return `${JSON.stringify(event).slice(0, -1)},"plant":${renderDraft(plant)}}`;
}

function sign(id: string, body: string, key: Buffer): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const hash = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
  return {
    "content-type": "application/json",
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${hash}`,
  };
}

/** Returns the status, or why there is none. */
async function post(
  url: string,
  body: string,
  headers: Record<string, string>,
  timeoutMs: number,
): Promise<number | string> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers,
      body,
      signal,
      redirect: "manual",
    });
    response.body?.cancel().catch(() => {});
    return response.status;
  } catch (error) {
    if (signal.aborted) return `no response within ${renderDuration(timeoutMs)}`;
    return describeSystemError(error) ?? (error as Error).message.replace(/\.$/, "");
  }
}
