/** Reads a stream of events as a client does. */
import { deadline } from "../src/shared/promises.ts";

/** Far longer than an event takes, and shorter than a test may. */
const patienceMs = 30_000;

export interface SeenEvent {
  readonly id: number;
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: as the service sends it.
  readonly data: any;
}

export class EventStreamReader {
  readonly #reader: ReadableStreamDefaultReader<string>;
  #text = "";

  constructor({ body }: Response) {
    if (!body) throw new Error("There is no stream.");
    this.#reader = (body as ReadableStream<Uint8Array<ArrayBuffer>>)
      .pipeThrough(new TextDecoderStream())
      .getReader();
  }

  /** The next event; absent after the last one. Fails if neither comes. */
  next(): Promise<SeenEvent | undefined> {
    return inTime(this.#readEvent(), "neither an event nor its end came");
  }

  async #readEvent(): Promise<SeenEvent | undefined> {
    for (;;) {
      const event = /^id: (\d+)\nevent: (.+)\ndata: (.+)\n\n/m.exec(this.#text);
      if (event) {
        const [block, id, type = "", data = ""] = event;
        this.#text = this.#text.slice(event.index + block.length);
        return { id: Number(id), type, data: JSON.parse(data) };
      }
      const { value, done } = await this.#reader.read();
      if (done) return undefined;
      this.#text += value;
    }
  }

  async take(count: number): Promise<SeenEvent[]> {
    const taken: SeenEvent[] = [];
    while (taken.length < count) {
      const event = await this.next();
      if (!event) break;
      taken.push(event);
    }
    return taken;
  }

  close(): Promise<void> {
    return inTime(this.#reader.cancel(), "it was not closed");
  }
}

function inTime<Result>(work: Promise<Result>, what: string): Promise<Result> {
  return deadline(work, patienceMs, () => {
    throw new Error(`A stream: ${what} within ${patienceMs} ms.`);
  });
}
