/** Sends a request byte for byte, and returns the response as text that is the same in every run. */
import { connect, type Socket } from "node:net";

/** One request of a walk. */
export interface Step {
  /** Bytes as latin1, with a mark such as `{reader}` in the place of each token. */
  readonly text: string;
  /** Its `X-Request-Id`, if it has one. */
  readonly id: string | undefined;
  /** On a connection of its own. */
  readonly isAlone?: boolean;
  /** Leaves before the end: when this event has come, or the head of the response, or nothing. */
  readonly leaveAfter?: number | "head" | "nothing";
  /** Sent on other connections, one after the other, once a response has begun, if one is due. */
  readonly meanwhile?: readonly string[];
}

/** What is put in the place of each mark. */
export type Tokens = ReadonlyMap<string, string>;

/** Far longer than any response takes. */
const silentMs = 10_000;

export class Wire {
  #socket: Socket | undefined;

  constructor(
    private readonly port: number,
    private readonly tokens: Tokens,
  ) {}

  /** The responses to a step, without what differs in every run. */
  async send(step: Step): Promise<string> {
    const { isAlone = false, leaveAfter } = step;
    const isOwn = isAlone || leaveAfter !== undefined;
    const socket = isOwn ? await this.#open() : (this.#socket ?? (await this.#open()));
    const bytes = this.#toBytes(step.text);
    if (leaveAfter === "nothing") {
      socket.write(Buffer.from(bytes, "latin1"));
      const others = await this.#sendMeanwhile(step);
      socket.destroy();
      return others.join("\n\n");
    }
    let others: Promise<string[]> | undefined;
    const received = await exchange(socket, bytes, leaveAfter, () => {
      others = this.#sendMeanwhile(step);
    });
    const isOver = isOwn || socket.destroyed || /\nconnection: close\r?\n/i.test(received);
    if (isOver) socket.destroy();
    if (!isOwn) this.#socket = isOver ? undefined : socket;
    return [describe(received, step), ...((await others) ?? [])].join("\n\n");
  }

  async #sendMeanwhile({ meanwhile = [] }: Step): Promise<string[]> {
    const responses: string[] = [];
    for (const text of meanwhile) {
      responses.push(await this.send({ text, id: undefined, isAlone: true }));
    }
    return responses;
  }

  close(): void {
    this.#socket?.destroy();
  }

  #toBytes(text: string): string {
    return text.replace(/\{(\w+)\}/g, (mark, name) => this.tokens.get(name) ?? mark);
  }

  async #open(): Promise<Socket> {
    const socket = connect(this.port, "127.0.0.1");
    await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
    return socket.setNoDelay(true);
  }
}

/** Sends bytes and returns what comes back: one response, what came until then, or until the end. */
function exchange(
  socket: Socket,
  bytes: string,
  leaveAfter: Step["leaveAfter"],
  onBegin: () => void,
): Promise<string> {
  return new Promise((resolve) => {
    let received = "";
    const end = (remark = "") => {
      clearTimeout(timer);
      socket.removeAllListeners();
      socket.on("error", () => {});
      resolve(received + remark);
    };
    const timer = setTimeout(() => end("\n(nothing more came)"), silentMs);
    socket
      .on("data", (piece: Buffer) => {
        if (received === "") onBegin();
        received += piece.toString("latin1");
        if (isEnough(received, bytes, leaveAfter)) end();
      })
      .on("error", () => {})
      .on("close", () => end(received === "" ? "(closed)" : ""));
    socket.write(Buffer.from(bytes, "latin1"));
  });
}

function isEnough(received: string, sent: string, leaveAfter: Step["leaveAfter"]): boolean {
  const { response, hasHead, isWhole } = parse(received, sent.startsWith("HEAD "));
  if (leaveAfter === "head") return hasHead;
  if (leaveAfter === undefined || !response.startsWith("HTTP/1.1 200")) return isWhole;
  const at = response.indexOf(`\nid: ${leaveAfter}\n`);
  return at >= 0 && response.includes("\n\n", at);
}

/** What has come so far: interim responses, and up to one other. */
function parse(received: string, isHead: boolean) {
  const interim =
    /^(?:HTTP\/1\.1 1\d\d[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n)*/.exec(received)?.[0] ?? "";
  const response = received.slice(interim.length);
  const headEnd = response.indexOf("\r\n\r\n");
  if (headEnd < 0) return { interim, response, head: "", body: "", hasHead: false, isWhole: false };
  const head = response.slice(0, headEnd);
  const rest = response.slice(headEnd + 4);
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  const parsed = { interim, response, head, hasHead: true };
  if (isHead || /^HTTP\/1\.1 (?:204|304) /.test(head))
    return { ...parsed, body: "", isWhole: true };
  if (/\r\ntransfer-encoding: chunked/i.test(head)) return { ...parsed, ...readChunks(rest) };
  if (length === undefined) return { ...parsed, body: rest, isWhole: false };
  const body = rest.slice(0, Number(length));
  return { ...parsed, body, isWhole: body.length === Number(length) };
}

/** The text of all chunks that are there, and whether the last one is. */
function readChunks(text: string): { body: string; isWhole: boolean } {
  let body = "";
  for (let at = 0; ; ) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd < 0) return { body, isWhole: false };
    const size = Number.parseInt(text.slice(at, lineEnd), 16);
    const end = lineEnd + 2 + size;
    if (size === 0) return { body, isWhole: text.length >= end + 2 };
    body += text.slice(lineEnd + 2, end);
    at = end + 2;
  }
}

/** Names in lower case and sorted, without the date, new ids and times; the body without chunks. */
function describe(received: string, { text: sent, id: sentId, leaveAfter }: Step): string {
  const { interim, head, body, hasHead } = parse(received, sent.startsWith("HEAD "));
  if (!hasHead) return received;
  const [statusLine = "", ...lines] = head.split("\r\n");
  const headers = lines.map((line) => line.replace(/^[^:]+/, (name) => name.toLowerCase()));
  const id = headers.find((line) => line.startsWith("x-request-id: "))?.slice(14);
  const isMetrics = /^\w+ \S*\/metrics\b/.test(sent);
  const isGzipped = headers.includes("content-encoding: gzip");
  // The same numbers and hashes don't have the same length, written or compressed.
  const changing = isMetrics || isGzipped ? /^(?:date|content-length): / : /^date: /;
  // After a refusal, so many chunked bodies a second are dropped, and their connections kept.
  const isChunked = /\r\ntransfer-encoding: *chunked\r\n/i.test(sent);
  const isUncertain = (line: string) => isChunked && line === "connection: close";
  const text = leaveAfter === "head" ? "" : toText(body, isGzipped);
  const shown = [
    ...interim.split("\r\n").filter((line) => line.startsWith("HTTP/")),
    statusLine,
    ...headers.filter((line) => !changing.test(line) && !isUncertain(line)).toSorted(),
    "",
    isMetrics ? withoutNumbers(text) : text,
  ].join("\n");
  return withoutTimes(id === undefined || id === sentId ? shown : shown.replaceAll(id, "(new id)"));
}

function toText(latin1: string, isGzipped: boolean): string {
  const bytes = Buffer.from(latin1, "latin1");
  return (isGzipped && bytes.length > 0 ? Buffer.from(Bun.gunzipSync(bytes)) : bytes).toString();
}

/** The series of /metrics. */
function withoutNumbers(metrics: string): string {
  const series = metrics.split("\n").map((line) => line.replace(/ [\d.e+-]+$/, ""));
  return [...new Set(series)].toSorted().join("\n");
}

/**
 * Also without the comments that keep a stream alive, and the hashes of the pages' files: they
 * differ with the folder that the checkout is in.
 */
function withoutTimes(text: string): string {
  return text
    .replace(/^(etag: W\/")[\da-f]{16}"$/m, '$1(hash)"')
    .replace(/(assets\/[\w-]+-)[\da-f]{16}\./g, "$1(hash).")
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "(time)")
    .replace(/^(ratelimit: .*?;t=)\d+/m, "$1(seconds)")
    .replace(/^(retry-after: )\d{2,}$/m, "$1(seconds)")
    .replace(/^:\n\n/gm, "");
}
