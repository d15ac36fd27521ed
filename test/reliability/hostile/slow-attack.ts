/**
 * Good clients of a service, while thousands of slow ones hold connections, and while none do.
 * Tells how long the good ones wait, and what the slow ones cost.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { NoResponse } from "../../../src/check/wire.ts";
import { type RunningService, startService } from "../../end-to-end/running-service.ts";
import { ClientPool } from "../generated/client-pool.ts";
import { takeVitalSigns, type VitalSigns } from "../vital-signs.ts";
import type { SlowReport } from "./slow-clients.ts";

const goodClientsCount = 8;
const goodPauseMs = 20;
/** Slow clients are put up with for so long; whoever waits longer than that waits for them. */
const hangMs = 12_000;
const arrivalMs = 300_000;
const arrivedShare = 0.9;
/** As much of a processor is used by clients who send a byte now and then. */
const calmShareMax = 0.5;
const calmMs = 1_000;
/**
 * A list that does not fit into what the kernel holds for a connection, so that slow readers hold
 * it up.
 */
const plantsCount = 200_000;
const nameCharacters = 180;

export interface Waits {
  readonly waitsMs: readonly number[];
  /** What good clients should not have got. */
  readonly faults: readonly string[];
}

export interface Attacked extends Waits {
  readonly slow: SlowReport;
  readonly signs: VitalSigns;
}

export class SlowAttack {
  readonly service: RunningService;

  private constructor(service: RunningService) {
    this.service = service;
  }

  static async start(): Promise<SlowAttack> {
    const service = await startService();
    const file = new Database(service.database);
    file.run("PRAGMA busy_timeout = 5000");
    file.run(
      `INSERT INTO plants (garden, id, name, tag)
         WITH RECURSIVE number (id) AS
           (SELECT 1 UNION ALL SELECT id + 1 FROM number WHERE id < ${plantsCount})
         SELECT 'gardener', id, printf('%0${nameCharacters}d', id), '' FROM number`,
    );
    file.close();
    return new SlowAttack(service);
  }

  /** What good clients wait for so many answers each. */
  async measure(answersEach: number): Promise<Waits> {
    const waitsMs: number[] = [];
    const faults: string[] = [];
    const requests = [
      this.#render("GET /plants?limit=20"),
      this.#render("GET /plants?limit=20&fields=id"),
      this.#render("POST /plants", '{"name":"Fern"}'),
    ];
    const work = async (number: number) => {
      const client = new ClientPool(this.service.port, 1, hangMs);
      for (let turn = 0; turn < answersEach; turn++) {
        const bytes = requests[(number + turn) % requests.length] as Buffer;
        const startedAtMs = performance.now();
        await client.sendPatiently([{ bytes, isHead: false }], (_, outcome) => {
          waitsMs.push(performance.now() - startedAtMs);
          const isGood = !(outcome instanceof NoResponse) && outcome.status < 300;
          if (!isGood)
            faults.push(`a good client got ${"status" in outcome ? outcome.status : outcome}`);
        });
        await Bun.sleep(goodPauseMs);
      }
      client.close();
    };
    await Promise.all(Array.from({ length: goodClientsCount }, (_, number) => work(number)));
    return { waitsMs, faults };
  }

  /**
   * The same while so many slow clients are there. They stay for so long at least, to see whom the
   * service lets stay.
   */
  async attack(count: number, answersEach: number, stayMs = 0): Promise<Attacked> {
    const startedAtMs = performance.now();
    const before = takeVitalSigns(this.service.pid);
    const { port, token } = this.service;
    const script = join(import.meta.dir, "slow-clients.ts");
    const child = Bun.spawn([process.execPath, script, String(port), String(count)], {
      env: { ...process.env, TOKEN: token },
      stdout: "pipe",
    });
    let slow: SlowReport | undefined;
    const reading = readLines(child.stdout, (line) => {
      slow = JSON.parse(line);
    });
    try {
      // They count once the service has accepted them.
      await until(arrivalMs, () => {
        const accepted = takeVitalSigns(this.service.pid).openFiles - before.openFiles;
        return accepted >= arrivedShare * count && (slow?.open ?? 0) >= arrivedShare * count;
      });
      await this.#untilAllAreHeldUp();
      const waits = await this.measure(answersEach);
      await Bun.sleep(Math.max(0, startedAtMs + stayMs - performance.now()));
      return {
        ...waits,
        slow: slow as unknown as SlowReport,
        signs: takeVitalSigns(this.service.pid),
      };
    } finally {
      child.kill("SIGKILL");
      await reading;
      await this.#untilTheyAreGone(before);
    }
  }

  async stop(): Promise<void> {
    await this.service[Symbol.asyncDispose]();
  }

  async #untilTheyAreGone({ openFiles }: VitalSigns): Promise<void> {
    await until(arrivalMs, () => takeVitalSigns(this.service.pid).openFiles <= openFiles + 20);
  }

  /**
   * What their lists cost until nothing more of them fits on its way is a matter of overload, not
   * of slowness.
   */
  async #untilAllAreHeldUp(): Promise<void> {
    let before = takeVitalSigns(this.service.pid).cpuSeconds;
    await until(arrivalMs, async () => {
      await Bun.sleep(calmMs);
      const now = takeVitalSigns(this.service.pid).cpuSeconds;
      const share = ((now - before) * 1_000) / calmMs;
      before = now;
      return share < calmShareMax;
    });
  }

  #render(line: string, body = ""): Buffer {
    const type =
      body === "" ? "" : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
    const head = `${line} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${this.service.token}\r\n`;
    return Buffer.from(`${head}${type}\r\n${body}`);
  }
}

async function readLines(
  stream: ReadableStream<Uint8Array>,
  take: (line: string) => void,
): Promise<void> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) take(line);
  }
}

async function until(limitMs: number, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const endsAtMs = performance.now() + limitMs;
  while (!(await isSo())) {
    if (performance.now() > endsAtMs) throw new Error(`It was not so within ${limitMs} ms.`);
    await Bun.sleep(50);
  }
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
