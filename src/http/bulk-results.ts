/** The results of a bulk: kept small, and rendered as they are sent. */
import type { PlantStoreError } from "../domain/errors.ts";
import type { PlantDraft, PlantId } from "../domain/plant.ts";
import { refusalOf } from "../domain/plants.ts";
import type { Outcome } from "../domain/ports.ts";
import { problemInfo } from "./problem.ts";
import type { Source } from "./stream.ts";

const chunkCharacters = 16 * 1024;
/** With fewer results, the response is sent whole. */
const streamedResultsMin = 64;

export function renderChanged(
  done: "deleted" | "updated",
  count: number,
  missing: readonly PlantId[],
): string | Source<string> {
  const render = (index: number) => String(missing[index]);
  return renderResults(`{"${done}":${count},"missing":[`, missing.length, render, "]}");
}

/** What became of a plant, in one byte. From `refused` on: an index of `#refusals`. */
const created = 0;
const replayed = 1;
const taken = 2;
const refused = 3;

/** A response may stay unread for long, so results are kept small and rendered as they are sent. */
export class BulkResults {
  readonly #states: Uint8Array;
  /** Of the plants that were created, or whose id was taken. */
  readonly #ids: BigInt64Array;
  readonly #refusals: PlantStoreError[] = [];

  constructor(count: number) {
    this.#states = new Uint8Array(count);
    this.#ids = new BigInt64Array(count);
  }

  readonly note = (index: number, { id }: PlantDraft, outcome: Outcome): void => {
    if (outcome.kind === "created") {
      this.#states[index] = outcome.replayed ? replayed : created;
      this.#ids[index] = outcome.id;
    } else if (outcome.kind === "taken" && id !== undefined) {
      this.#states[index] = taken;
      this.#ids[index] = id;
    } else {
      this.#states[index] = refused + this.#indexOf(refusalOf(outcome, id));
    }
  };

  /** Refusals for the same reason are one: there are only a few reasons. */
  #indexOf(refusal: PlantStoreError): number {
    const found = this.#refusals.findIndex(({ message }) => message === refusal.message);
    return found < 0 ? this.#refusals.push(refusal) - 1 : found;
  }

  render(): string | Source<string> {
    return renderResults("[", this.#states.length, (index) => this.#renderResult(index), "]");
  }

  #renderResult(index: number): string {
    const state = this.#states[index] as number;
    const id = this.#ids[index];
    switch (state) {
      case created:
        return `{"status":201,"id":${id}}`;
      case replayed:
        return `{"status":201,"id":${id},"replayed":true}`;
      case taken:
        return renderRefusal(refusalOf({ kind: "taken" }, id));
      default:
        return renderRefusal(this.#refusals[state - refused] as PlantStoreError);
    }
  }
}

/** In chunks, as they are sent; whole if there are few. */
function renderResults(
  opening: string,
  count: number,
  render: (index: number) => string,
  closing: string,
): string | Source<string> {
  let index = 0;
  let isDone = false;
  const renderNext = (): string | undefined => {
    if (isDone) return undefined;
    let text = index === 0 ? opening : "";
    while (text.length < chunkCharacters && index < count) {
      text += `${index === 0 ? "" : ","}${render(index++)}`;
    }
    isDone = index === count;
    return isDone ? text + closing : text;
  };
  if (count >= streamedResultsMin) return { next: async () => renderNext(), close() {} };
  return renderNext() ?? "";
}

function renderRefusal({ code, message: detail }: PlantStoreError): string {
  return JSON.stringify({ status: problemInfo[code].status, code, detail });
}
