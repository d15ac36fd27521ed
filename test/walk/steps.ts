/**
 * The requests of a walk, at random: every operation, with valid and invalid input, tokens,
 * conditions, paths and methods, streams, and clients that leave. Some follow from the responses to
 * earlier ones: entity tags, links, numbers of events.
 */
import { makeDice, spread } from "../../testing/dice.ts";
import * as values from "./values.ts";
import type { Step } from "./wire.ts";

type Headers = Record<string, string>;
type Caller = keyof typeof values.grants;

/** A request before it has what any request may have. */
interface Draft {
  readonly method: string;
  readonly target: string;
  readonly headers?: Headers;
  readonly body?: string | undefined;
  /** Whose token it should have; absent if it needs none. */
  readonly caller?: Caller;
}

/** So many that a list of them is a stream, in three requests. */
const woodPlants = 2_700;
const bodyBytesMax = 64 * 1024;

export class Walk {
  readonly #dice: (sides: number) => number;
  /** What comes next, made when it's sent. */
  readonly #planned: (() => Step)[];
  readonly #oddities: readonly string[];
  readonly #entityTags = ['"x"'];
  readonly #links: string[] = [];
  readonly #queries = ["/plants"];
  /** Of the garden `rose`. */
  #lastEvent = 0;
  #count = 0;

  /** `base` is the base path of the service. */
  constructor(
    seed: number,
    private readonly base: string,
  ) {
    this.#dice = makeDice(spread(seed));
    this.#oddities = values.makeOddities(base);
    this.#planned = Array.from({ length: 3 }, () => () => this.#plantWood());
  }

  /** Follows from the seed and from the responses so far. */
  next(): Step {
    this.#count++;
    return this.#planned.shift()?.() ?? this.#choose();
  }

  /** What later requests use of a response. */
  note(response: string): void {
    const entityTag = /^etag: (".+")$/m.exec(response)?.[1];
    const link = /^link: <([^>]+)>/m.exec(response)?.[1];
    const lastEvent = /"garden":"rose".*"lastEvent":(\d+)/.exec(response)?.[1];
    if (entityTag) this.#entityTags.push(entityTag);
    if (link) this.#links.push(link.slice(this.base.length));
    if (lastEvent) this.#lastEvent = Number(lastEvent);
  }

  #roll(percent: number): boolean {
    return this.#dice(100) < percent;
  }

  #pick<Item>(items: readonly Item[]): Item {
    return items[this.#dice(items.length)] as Item;
  }

  /** One that is right or, rarely, one that is wrong. */
  #mostly<Item>(right: readonly Item[], wrong: readonly Item[], percent = 8): Item {
    return this.#pick(this.#roll(percent) ? wrong : right);
  }

  #choose(): Step {
    const choices: readonly [share: number, make: () => Step][] = [
      [16, () => this.#toStep(this.#create())],
      [22, () => this.#toStep(this.#onePlant())],
      [18, () => this.#toStep(this.#list())],
      [9, () => this.#toStep(this.#many())],
      [8, () => this.#toStep(this.#events())],
      [4, () => this.#toStep(this.#me())],
      [7, () => this.#toStep(this.#openPath())],
      [5, () => this.#toStep(this.#wrongPath())],
      [2, () => this.#stream()],
      [3, () => this.#leave()],
      [6, () => ({ text: toBytes(this.#pick(this.#oddities)), id: undefined, isAlone: true })],
    ];
    let at = this.#dice(choices.reduce((sum, [share]) => sum + share, 0));
    const chosen = choices.find(([share]) => {
      at -= share;
      return at < 0;
    });
    return (chosen as (typeof choices)[number])[1]();
  }

  #plantWood(): Step {
    const trees = Array.from({ length: woodPlants / 3 }, () => {
      return `{"name":"Tree ${this.#dice(1_000)}","tag":"${this.#pick(["", "oak", "elm"])}"}`;
    });
    return this.#plain("POST /plants/bulk", "keeper", {}, `[${trees}]`);
  }

  /** A plant as JSON, more or less. */
  #plant(own: readonly string[] = [], isWhole = true): string {
    const fields = [...own];
    const hasName = isWhole || this.#roll(60);
    if (hasName) fields.push(`"name":${JSON.stringify(this.#pick(values.names))}`);
    if (this.#roll(60)) fields.push(`"tag":${JSON.stringify(this.#pick(values.tags))}`);
    while (this.#roll(6)) fields.push(this.#pick(values.wrongFields));
    return `{${fields.join(this.#pick([",", ", ", ",\n"]))}}`;
  }

  #create(): Draft {
    const id = this.#mostly(values.ids, values.otherNumbers);
    const headers: Headers = {};
    if (this.#roll(35)) headers["Idempotency-Key"] = this.#mostly(values.keys, values.wrongKeys);
    if (this.#roll(3)) headers["If-Match"] = this.#condition();
    if (this.#roll(3)) headers["If-None-Match"] = this.#condition();
    const plant = this.#plant(this.#roll(40) ? [`"id":${id}`] : []);
    const body = this.#mostly([plant], values.wrongBodies, 4);
    return {
      method: "POST",
      target: `/plants${this.#query(["include=id"], 25)}`,
      headers,
      body: this.#roll(2) ? body.padEnd(bodyBytesMax + this.#dice(2)) : body,
      caller: this.#pick(["writer", "writer", "writer", "stranger"]),
    };
  }

  #onePlant(): Draft {
    const id = this.#mostly(values.ids, [...values.farIds, ...values.wrongIds]);
    const method = this.#pick(["GET", "GET", "HEAD", "PUT", "PUT", "PUT", "PATCH", "DELETE"]);
    const isRead = method === "GET" || method === "HEAD";
    const headers: Headers = {};
    if (this.#roll(30)) headers["If-Match"] = this.#condition();
    if (this.#roll(isRead ? 40 : 15)) headers["If-None-Match"] = this.#condition();
    if (this.#roll(1)) headers["Content-Range"] = "bytes 0-9/10";
    const isMergePatch = method === "PATCH" && this.#roll(30);
    if (isMergePatch) headers["Content-Type"] = "application/merge-patch+json";
    const own = this.#roll(15) ? [`"id":${this.#roll(80) ? id : "1"}`] : [];
    const plant = this.#plant(own, method !== "PATCH");
    const hasBody = method.startsWith("P") || this.#roll(2);
    return {
      method,
      target: `/plants/${id}${this.#query(["include=id"], 25)}`,
      headers,
      body: hasBody ? this.#mostly([plant], values.wrongBodies, 4) : undefined,
      caller: isRead ? this.#pick(["reader", "reader", "writer", "stranger"]) : "writer",
    };
  }

  /** Entity tags that were seen, or others. */
  #condition(): string {
    const seen = this.#pick(this.#entityTags.slice(-6));
    const right = [seen, seen, "*", `W/${seen}`, `"other", ${seen}`, `, "other",,${seen}`, '""'];
    return this.#mostly(right, values.wrongEntityTags);
  }

  /** Each of these parameters with a chance, sometimes with one that is wrong or repeated. */
  #query(parameters: readonly string[], percent: number): string {
    const given = parameters.filter(() => this.#roll(percent));
    if (this.#roll(3)) given.push(this.#pick(values.wrongParameters));
    if (this.#roll(2)) given.push(...given.slice(0, 1));
    return given.length > 0 || this.#roll(2) ? `?${given.join("&")}` : "";
  }

  /** Often one that was sent before, so that it may be cached. */
  #list(): Draft {
    const method = this.#pick(["GET", "GET", "GET", "GET", "HEAD"]);
    const caller = this.#pick(["reader", "reader", "writer", "stranger", "keeper"] as const);
    const kind = this.#dice(10);
    if (kind < 4) return { method, caller, target: this.#pick(this.#queries.slice(-6)) };
    if (kind === 4 && this.#links.length > 0) {
      return { method, caller, target: this.#pick(this.#links.slice(-6)) };
    }
    const limit = `limit=${this.#mostly(values.limits, values.wrongLimits)}`;
    const tag = this.#mostly(values.tags.map(encodeURIComponent), values.wrongTags);
    const after = this.#mostly([...values.ids, ...values.farIds], values.wrongIds);
    const order = `order=${this.#mostly(["asc", "desc"], ["", "down"])}`;
    const search = `q=${this.#mostly(values.searches, values.wrongSearches)}`;
    const more = [`after=${after}`, `tag=${tag}`, order, search, "include=id"];
    const target =
      kind < 7
        ? `/tags${this.#query([limit, `after=${tag}`], 50)}`
        : `/plants${this.#query([limit, ...more], 30)}`;
    this.#queries.push(target);
    return { method, caller, target };
  }

  #many(): Draft {
    const operation = this.#pick([
      "bulk",
      "bulk",
      "bulk",
      "bulk-update",
      "bulk-update",
      "bulk-delete",
    ]);
    const length = this.#mostly([1, 2, 3, 8, 20], [70, 300, 600]);
    const headers: Headers = {};
    const hasKey = operation === "bulk" && this.#roll(35);
    if (hasKey) headers["Idempotency-Key"] = this.#mostly(values.keys, values.wrongKeys);
    const makePlant = () => this.#plant(this.#roll(30) ? [`"id":${this.#pick(values.ids)}`] : []);
    const makeId = () => this.#mostly(values.ids, values.farIds);
    const ids = () => `"ids":[${Array.from({ length }, makeId)}]`;
    const bodies: Readonly<Record<string, () => string>> = {
      bulk: () => `[${Array.from({ length }, makePlant)}]`,
      "bulk-delete": () => `{${ids()}}`,
      "bulk-update": () => `{${ids()},"set":${this.#plant([], false)}}`,
    };
    const body = bodies[operation]?.() ?? "";
    return {
      method: "POST",
      target: `/plants/${operation}${this.#query([], 0)}`,
      headers,
      body: this.#mostly([body], [...values.wrongBulks, ...values.wrongBodies]),
      caller: "writer",
    };
  }

  /** A page. A stream is opened only where it's refused, because it has no end. */
  #events(): Draft {
    const near = String(Math.max(0, this.#lastEvent - this.#dice(9)));
    const after = this.#mostly(["0", "1", near, near], ["999999", "-1", "x"]);
    const limit = this.#mostly(["1", "3", "1000"], ["0", "1001", "x"]);
    const headers: Headers = {};
    const accepted = [
      ...["application/json", "*/*", "application/json, text/event-stream;q=0.5"],
      ...["text/event-stream;q=0, */*", "text/event-stream;q=0.1, application/json;q=0.9"],
    ];
    if (this.#roll(20)) headers.Accept = this.#pick(accepted);
    if (this.#roll(20)) headers["Last-Event-ID"] = this.#pick(["1", "999999", "x", "-1"]);
    const isRefused = Number(headers["Last-Event-ID"] ?? 1) !== 1;
    if (isRefused && this.#roll(60)) headers.Accept = "text/event-stream";
    return {
      method: headers.Accept === "text/event-stream" ? "GET" : this.#pick(["GET", "GET", "HEAD"]),
      target: `/events${this.#query([`after=${after}`, `limit=${limit}`], 50)}`,
      headers,
      caller: this.#pick(["reader", "stranger"]),
    };
  }

  #me(): Draft {
    const caller = this.#pick(["reader", "writer", "stranger", "keeper"] as const);
    return { method: this.#pick(["GET", "GET", "HEAD"]), target: "/me", caller };
  }

  #openPath(): Draft {
    const headers: Headers = {};
    const encodings = ["gzip", "br, gzip;q=0.5", "gzip;q=0"];
    if (this.#roll(30)) headers["Accept-Encoding"] = this.#pick(encodings);
    if (this.#roll(20)) headers["If-None-Match"] = this.#pick(["*", '"x"']);
    return {
      method: this.#mostly(["GET", "GET", "HEAD"], ["POST", "OPTIONS"], 20),
      target: this.#pick(values.openPaths) + this.#query([], 0),
      headers,
    };
  }

  #wrongPath(): Draft {
    const method = this.#pick(values.methods);
    const hasBody = method.startsWith("P") && this.#roll(50);
    return {
      method,
      target: this.#mostly(values.paths, values.wrongPaths, 50),
      body: hasBody ? this.#plant() : undefined,
      caller: "writer",
    };
  }

  /** Asks for the number of the last event; then reads a stream up to it, or to the next one. */
  #stream(): Step {
    const Accept = this.#pick(["text/event-stream", "text/event-stream, */*"]);
    this.#planned.push(() => {
      const last = this.#lastEvent;
      const from = String(Math.max(0, last - 1 - this.#dice(120)));
      const isLive = last === 0 || this.#roll(30);
      if (isLive) {
        const meanwhile = [this.#plain("POST /plants", "writer", {}, '{"name":"Fern"}').text];
        const live = this.#plain("GET /events", "reader", { Accept });
        return { ...live, leaveAfter: last + 1, meanwhile };
      }
      const resumed = this.#roll(50)
        ? this.#plain(`GET /events?after=${from}`, "reader", { Accept })
        : this.#plain("GET /events?after=0", "reader", { Accept, "Last-Event-ID": from });
      return { ...resumed, leaveAfter: last };
    });
    return this.#plain("GET /me", "reader");
  }

  /** A client that doesn't wait for the end of the response, or doesn't send all of its body. */
  #leave(): Step {
    const lists = ["GET /plants", "GET /plants?q=tree&limit=2000", "GET /tags"];
    if (this.#roll(50)) return { ...this.#plain(this.#pick(lists), "keeper"), leaveAfter: "head" };
    const whole = this.#plain("POST /plants", "writer", {}, '{"name":"Fern"}');
    // When these have their responses, the service has the part of the body.
    const meanwhile = Array<string>(2).fill(this.#plain("GET /healthz", "writer").text);
    return { ...whole, text: whole.text.slice(0, -5), leaveAfter: "nothing", meanwhile };
  }

  /** A good request. */
  #plain(request: string, caller: Caller, more: Headers = {}, body?: string): Step {
    const [method = "", target = ""] = request.split(" ");
    const id = this.#nextId();
    const Authorization = `Bearer {${caller}}`;
    const headers: Headers = { Host: "plants.test", Authorization, "X-Request-Id": id, ...more };
    if (body) headers["Content-Type"] = "application/json";
    if (body) headers["Content-Length"] = String(Buffer.byteLength(body));
    return { text: this.#toText(method, target, headers, toBytes(body ?? "")), id };
  }

  /** Adds what any request may have, right or wrong. */
  #toStep({ method, target, headers: own = {}, body, caller }: Draft): Step {
    const headers: Headers = { Host: this.#mostly(["plants.test"], values.wrongHosts, 2) };
    const scheme = this.#mostly(["Bearer"], ["bearer", "BEARER  "]);
    const token = this.#roll(5) ? "reader" : caller;
    if (token && !this.#roll(6)) headers.Authorization = `${scheme} {${token}}`;
    else if (this.#roll(70)) headers.Authorization = this.#pick(values.wrongCredentials);
    const id = this.#roll(80) ? this.#nextId() : undefined;
    if (id) headers["X-Request-Id"] = id;
    else if (this.#roll(30)) headers["X-Request-Id"] = this.#pick(values.wrongRequestIds);
    if (this.#roll(6)) headers.traceparent = this.#pick(values.traces);
    if (this.#roll(10)) headers.Origin = this.#pick(values.origins);
    if (this.#roll(3)) headers.Connection = "close";
    let sent = "";
    if (body !== undefined) {
      headers["Content-Type"] = this.#mostly(values.types, values.wrongTypes, 3);
      if (this.#roll(2)) headers["Content-Encoding"] = this.#pick(["gzip", "identity"]);
      if (this.#roll(2)) headers.Expect = "100-continue";
      sent = this.#frame(toBytes(body), headers);
    }
    const text = this.#toText(method, target, { ...headers, ...own }, sent);
    return { text, id, isAlone: headers.Connection === "close" };
  }

  #frame(bytes: string, headers: Headers): string {
    const isChunked = bytes.length < 4_000 && this.#roll(10);
    if (!isChunked) {
      headers["Content-Length"] = String(bytes.length);
      return bytes;
    }
    headers["Transfer-Encoding"] = "chunked";
    const at = this.#dice(bytes.length + 1);
    const parts = [bytes.slice(0, at), bytes.slice(at)].filter((part) => part !== "");
    const chunks = parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`);
    return `${chunks.join("")}0\r\n\r\n`;
  }

  #toText(method: string, target: string, headers: Headers, body: string): string {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = `${method} ${this.base}${target} HTTP/1.1\r\n${lines.join("")}\r\n`;
    return toBytes(head) + body;
  }

  #nextId(): string {
    return `w-${this.#count}`;
  }
}

/** UTF-8, as one character for each byte. */
function toBytes(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
