/** What the headers of a request say of its body, before any of it is read. */
import { PlantStoreError, refuse } from "../domain/errors.ts";
import { jsonType, type RequestBody } from "./operation.ts";
import { plantCharactersMax } from "./validation.ts";

/** Any valid plant fits, even with every character escaped. Longer bodies are bulks, or invalid. */
const smallBodyBytes = plantCharactersMax;
/** Reserved for a body that declares no length, until it has arrived or is longer. */
const undeclaredBytes = 256 * 1024;

/** If a body declares more, its rest isn't dropped: see unread-body.ts. */
export const droppedBytesMax = 1024 * 1024;

export class DeclaredBody {
  readonly isPresent: boolean;
  /** Whether it comes in chunks, and nothing says otherwise. */
  readonly isChunked: boolean;
  /** `Content-Length`: absent without it, and `NaN` if it isn't one number. */
  readonly bytes: number | undefined;

  constructor(private readonly headers: Headers) {
    const length = headers.get("content-length");
    // The runtime lets a repeated one through. Nothing may take it for a small one.
    if (length !== null) this.bytes = /^\d+$/.test(length) ? Number(length) : Number.NaN;
    const encoding = headers.get("transfer-encoding");
    this.isChunked = encoding?.toLowerCase() === "chunked" && this.bytes === undefined;
    this.isPresent = (this.bytes !== undefined && this.bytes !== 0) || encoding !== null;
  }

  get hasLength(): boolean {
    return this.bytes !== undefined;
  }

  /** Whether it's at most as long as any plant. */
  get isSmall(): boolean {
    return this.bytes !== undefined && this.bytes <= smallBodyBytes;
  }

  /** A body over 1 MiB, or whose length isn't a number, is refused unread. */
  get bytesToReserve(): number {
    if (!this.isPresent || this.isSmall) return 0;
    const bytes = this.bytes ?? undeclaredBytes;
    return bytes <= droppedBytesMax ? bytes : smallBodyBytes;
  }

  /**
   * Fails with `invalid-request` if a proxy could disagree about where the body ends. The runtime
   * even accepts `chunked,`.
   */
  checkFraming(): void {
    const encoding = this.headers.get("transfer-encoding");
    if (encoding === null || encoding.toLowerCase() === "chunked") return;
    throw refuse({ header: "Transfer-Encoding", detail: "must be chunked, and nothing else." });
  }

  /**
   * Whether the client gets what it waits for before it sends the body. The runtime sends a 100, but
   * only to this spelling, and Java's is another.
   */
  get isExpectationMet(): boolean {
    const expectation = this.headers.get("expect");
    return expectation === null || expectation === "100-continue";
  }

  /** Fails with `unsupported-media-type`, `invalid-request` or `too-large`. */
  check({ bytesMax, otherType }: Pick<RequestBody, "bytesMax" | "otherType">): void {
    this.#checkType(otherType);
    if (Number.isNaN(this.bytes)) throw ambiguousLength;
    if (this.bytes !== undefined && this.bytes > bytesMax) throw tooLarge(bytesMax);
  }

  /** A request that has neither body nor type passes: its body is found empty. */
  #checkType(otherType: string | undefined): void {
    const header = this.headers.get("content-type");
    const [, type = ""] = typeInUtf8.exec(header ?? "") ?? [];
    const encoding = this.headers.get("content-encoding")?.toLowerCase() ?? "identity";
    const isExpected =
      header === null ? !this.isPresent : [jsonType, otherType].includes(type.toLowerCase());
    if (!isExpected || encoding !== "identity") throw unsupportedType;
  }
}

/**
 * A type, and perhaps its charset. A semicolon with nothing after it is no parameter, and some
 * clients send it. Anchored at both ends: a search would take quadratic time on many spaces.
 */
const typeInUtf8 = /^([^\s;]+)\s*(?:;\s*charset\s*=\s*(?:utf-8|"utf-8")\s*)?(?:;\s*)?$/i;

const unsupportedType = new PlantStoreError(
  "unsupported-media-type",
  "Send JSON in UTF-8 with Content-Type: application/json, and no Content-Encoding.",
);

const ambiguousLength = refuse({
  header: "Content-Length",
  detail: "must be given once, as a number.",
});

export function tooLarge(bytesMax: number): PlantStoreError {
  return new PlantStoreError("too-large", `Send a body of at most ${bytesMax} bytes.`);
}
