/** Exports plants as CSV, and says at the foot of the page how far it is. */
import { signal } from "@preact/signals";
import { renderCount } from "../src/shared/text.ts";
import type { Plant, Query } from "./api.ts";
import type { Garden } from "./garden.ts";
import { loadFiles } from "./load-files.ts";
import { notify, warn } from "./message.ts";

interface RunningExport {
  readonly exported: number;
  readonly stop: () => void;
}

export class Exports {
  readonly running = signal<RunningExport | undefined>();

  constructor(readonly garden: Garden) {}

  /**
   * Exports the list, or only these of its plants. Browsers keep blobs outside of the page's memory,
   * so each page becomes one at once.
   */
  async export(
    download: (file: Blob, name: string) => void,
    selected?: readonly Plant[],
  ): Promise<void> {
    if (this.running.value) return;
    const { request } = this.garden.list.value;
    const stopping = new AbortController();
    const stop = () => stopping.abort();
    this.running.value = { exported: 0, stop };
    try {
      const { PlantRenderer } = await loadFiles();
      const renderer = new PlantRenderer("csv");
      const parts = [new Blob([renderer.header()])];
      let exported = 0;
      const pages = selected
        ? [selected]
        : this.garden.api.listPages(request, { signal: stopping.signal });
      for await (const page of pages) {
        parts.push(new Blob([renderer.page(page)]));
        exported += page.length;
        this.running.value = { exported, stop };
      }
      const name = selected ? "selected-plants.csv" : nameFile(request);
      download(new Blob(parts, { type: "text/csv" }), name);
      const { warning } = renderer;
      const note = `Exported ${renderCount(exported, "plant")}.`;
      notify(warning ? `${note} ${warning}` : note, warning !== undefined);
    } catch (error) {
      if (stopping.signal.aborted) notify("The export was stopped.");
      else warn("The plants couldn’t be exported.", error);
    } finally {
      this.running.value = undefined;
    }
  }
}

function nameFile({ tag, q }: Query): string {
  const which = tag === "" ? ["untagged-plants"] : ["plants", tag];
  return `${[...which, q].filter(Boolean).join("-")}.csv`;
}
