/**
 * Lets requests in. Every request waits for its garden's turn, and a long body reserves its memory
 * before it waits: the runtime keeps what arrives until it's read. A request is refused if there is
 * no room for its body, or if it waited too long.
 */
import { overloaded, type PlantStoreError } from "../domain/errors.ts";
import type { IncomingRequest } from "./incoming.ts";
import type { Reservation, ReservedBytes } from "./reserved-bytes.ts";
import type { Scheduler } from "./scheduler.ts";

/** `refusal`: why a request that needs a token is refused. */
type Handle = (
  incoming: IncomingRequest,
  reserved: Reservation,
  refusal?: PlantStoreError,
) => Promise<Response>;

export class Admission {
  readonly #scheduler: Scheduler;
  readonly #reservedBytes: ReservedBytes;

  constructor(scheduler: Scheduler, reservedBytes: ReservedBytes) {
    this.#scheduler = scheduler;
    this.#reservedBytes = reservedBytes;
  }

  /** Runs `handle` in its turn. Avoids awaits: one costs as much as sending a cached list. */
  admit(incoming: IncomingRequest, handle: Handle): Promise<Response> {
    const { body, queueName, startedAtMs } = incoming;
    const reserved = this.#reservedBytes.open(queueName);
    if (body.isLong && !reserved.tryAdd(body.bytesToReserve)) {
      body.isRefused = true;
      return handle(incoming, reserved, overloaded);
    }
    if (this.#scheduler.mayRun(startedAtMs)) return handle(incoming, reserved);
    return this.#scheduler
      .turn(queueName)
      .then((isLate) => handle(incoming, reserved, isLate ? overloaded : undefined));
  }

  /**
   * Whether a response must wait for `endOfTick` because its request's body is still arriving. Sent
   * at once, such responses could keep the runtime accepting, responding and closing, and nothing
   * else would run. If they waited for a turn, more of the bodies would arrive and take memory.
   */
  mustWait({ body }: IncomingRequest): boolean {
    return body.isPending && !this.#scheduler.mayRun();
  }

  endOfTick(): Promise<void> {
    return this.#scheduler.endOfTick();
  }
}
