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
  /** What isn't an event: `retry` and comments. */
  readonly others: string[] = [];

  constructor({ body }: Response) {
    if (!body) throw new Error("There is no stream.");
    this.#reader = (body as ReadableStream<Uint8Array<ArrayBuffer>>)
      .pipeThrough(new TextDecoderStream())
      .getReader();
  }

  /** The next event; absent after the last one. */
  async next(): Promise<SeenEvent | undefined> {
    for (;;) {
      const end = this.#text.indexOf("\n\n");
      if (end < 0) {
        const { value, done } = await this.#reader.read();
        if (done) return undefined;
        this.#text += value;
        continue;
      }
      const block = this.#text.slice(0, end);
      this.#text = this.#text.slice(end + 2);
      const [, id, type = "", data = ""] = /^id: (\d+)\nevent: (.+)\ndata: (.+)$/.exec(block) ?? [];
      if (id !== undefined) return { id: Number(id), type, data: JSON.parse(data) };
      this.others.push(block);
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
