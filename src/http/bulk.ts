/**
 * Many plants in one request: a plant on each line of the body, a result on each line of the
 * response. Both are worked on a few lines at a time, so that other requests run in between.
 */
import { errorCodes, PlantStoreError, summarize, type ValidationError } from "../domain/errors.ts";
import { type PlantDraft, plantDraftSchema } from "../domain/plant.ts";
import { type NumberedDraft, refusalOf, type Source, sliceLines } from "../domain/plants.ts";
import type { Outcome } from "../domain/storage.ts";
import { validateObject } from "./request.ts";

export const linesMax = 10_000;
/** More than any valid plant needs, with each character escaped. */
export const lineCharactersMax = 4_096;
const lineErrorsMax = 10;
/** How much of a body is validated in one slice: a millisecond or two, whatever it holds. */
const turnCharactersMax = 32 * 1024;
const turnLinesMax = 48;
const chunkCharacters = 16 * 1024;
/** What a response takes that is being sent, roughly: a chunk, its bytes, the stream. */
const streamBytes = 64 * 1024;
/** With fewer lines the response is sent whole. */
const streamedLinesMin = 64;

/** What became of a line, in one byte. From `refused` on: an index of `#refusals`. */
const invalid = 0;
const created = 1;
const replayed = 2;
const taken = 3;
const refused = 4;

export class Bulk {
  readonly #text: string;
  readonly #count: number;
  // A response may stay unread for long, so results are kept small, and rendered as they are sent.
  readonly #states: Uint8Array;
  /** Of the plants that were created, or whose id was taken. */
  readonly #ids: BigInt64Array;
  readonly #refusals: PlantStoreError[] = [];

  /** Fails with `too-large` if there are too many lines. */
  constructor(text: string) {
    this.#text = text;
    this.#count = countLines(text);
    this.#states = new Uint8Array(this.#count);
    this.#ids = new BigInt64Array(this.#count);
  }

  /** What it takes in memory besides its text, until its results are sent. */
  get reservedBytes(): number {
    return this.#states.byteLength + this.#ids.byteLength + streamBytes;
  }

  /** The valid plants, slice by slice. `turn` lets other requests run. */
  async *readSlices(turn: () => Promise<unknown>): AsyncGenerator<NumberedDraft[], void> {
    let slice: NumberedDraft[] = [];
    let line = 0;
    let lines = 0;
    let characters = 0;
    let earlier = "";
    let draft = validateLine(earlier);
    for (const text of linesOf(this.#text)) {
      if (text !== earlier) draft = validateLine(text);
      earlier = text;
      if (!Array.isArray(draft)) slice.push({ line, draft });
      line++;
      if (line % sliceLines === 0 && slice.length > 0) {
        yield slice;
        slice = [];
      }
      lines++;
      characters += text.length;
      if (lines < turnLinesMax && characters < turnCharactersMax) continue;
      lines = 0;
      characters = 0;
      await turn();
    }
    if (slice.length > 0) yield slice;
  }

  readonly note = ({ line, draft: { id } }: NumberedDraft, outcome: Outcome): void => {
    if (outcome.kind === "created") {
      this.#states[line] = outcome.replayed ? replayed : created;
      this.#ids[line] = outcome.id;
    } else if (outcome.kind === "taken" && id !== undefined) {
      this.#states[line] = taken;
      this.#ids[line] = id;
    } else {
      this.#states[line] = refused + this.#indexOf(refusalOf(outcome, id));
    }
  };

  /** Refusals for the same reason are one: there are only a few reasons. */
  #indexOf(refusal: PlantStoreError): number {
    const found = this.#refusals.findIndex(({ message }) => message === refusal.message);
    return found < 0 ? this.#refusals.push(refusal) - 1 : found;
  }

  renderResults(): string | Source<string> {
    const lines = linesOf(this.#text);
    let line = 0;
    let earlier: { readonly text: string; readonly result: string } | undefined;
    /** Equal lines in a row cost next to nothing to send: they must make little garbage here. */
    const renderInvalidLine = (text: string): string => {
      if (earlier?.text !== text) {
        earlier = { text, result: renderInvalid(validateLine(text) as ValidationError[]) };
      }
      return earlier.result;
    };
    const renderNext = (): string | undefined => {
      let text = "";
      let characters = 0;
      while (text.length < chunkCharacters && characters < turnCharactersMax) {
        const next = lines.next();
        if (next.done) break;
        characters += next.value.length;
        const result = this.#renderResult(line++) ?? renderInvalidLine(next.value);
        text += `${result}\n`;
      }
      return text === "" ? undefined : text;
    };
    if (this.#count >= streamedLinesMin) return { next: async () => renderNext(), close() {} };
    let whole = "";
    for (let text = renderNext(); text !== undefined; text = renderNext()) whole += text;
    return whole;
  }

  /** Absent if the line is not valid. */
  #renderResult(line: number): string | undefined {
    const state = this.#states[line] ?? invalid;
    const id = this.#ids[line];
    switch (state) {
      case created:
        return `{"status":201,"id":${id}}`;
      case replayed:
        return `{"status":201,"id":${id},"replayed":true}`;
      case taken:
        return renderRefusal(refusalOf({ kind: "taken" }, id));
      case invalid:
        return undefined;
      default:
        return renderRefusal(this.#refusals[state - refused] as PlantStoreError);
    }
  }
}

function renderRefusal({ code, message: detail }: PlantStoreError): string {
  return JSON.stringify({ status: errorCodes[code].status, code, detail });
}

function renderInvalid(errors: readonly ValidationError[]): string {
  const code = "invalid-request";
  const detail = summarize(errors[0] as ValidationError, errors.length);
  const shown = errors.slice(0, lineErrorsMax);
  return JSON.stringify({ status: errorCodes[code].status, code, detail, errors: shown });
}

/** The plant of a line, or what is wrong with it. */
export function validateLine(line: string): PlantDraft | ValidationError[] {
  if (line.length > lineCharactersMax) {
    const detail = `The line must have at most ${lineCharactersMax} characters.`;
    return [{ pointer: "", detail }];
  }
  const errors: ValidationError[] = [];
  const draft = validateObject(plantDraftSchema, line, errors, "line");
  return errors.length > 0 ? errors : (draft as PlantDraft);
}

/** One by one: splitting a body of short lines takes far more memory than the body. */
export function* linesOf(text: string): Generator<string, void> {
  // A line break at the end begins no line.
  const end = text.endsWith("\n") ? text.length - 1 : text.length;
  for (let at = 0; at <= end; ) {
    const breakAt = text.indexOf("\n", at);
    const lineEnd = breakAt < 0 ? end : breakAt;
    yield text.slice(at, lineEnd);
    at = lineEnd + 1;
  }
}

function countLines(text: string): number {
  let count = text === "" || !text.endsWith("\n") ? 1 : 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) {
    if (++count > linesMax) break;
  }
  if (count <= linesMax) return count;
  throw new PlantStoreError("too-large", `Send at most ${linesMax} lines.`);
}
