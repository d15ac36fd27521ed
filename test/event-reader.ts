/** Reads a stream of events as a client does. */

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

  /** The next event; absent after the last one. */
  async next(): Promise<SeenEvent | undefined> {
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
    return this.#reader.cancel();
  }
}
