/** Ways to bring plants to the page and to take them away: files that are chosen, dropped or saved. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { notify } from "./message.ts";
import { garden, imports, session } from "./state.ts";

/** Whether somebody is dragging a file over the page. */
const isDragging = signal(false);

export function chooseFile(): void {
  document.getElementById("import-file")?.click();
}

export function download(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // The browser may not have read it yet.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Takes files and pasted lists wherever they arrive on the page. */
export function FileInput() {
  useEffect(() => {
    addEventListener("paste", paste);
    addEventListener("dragover", drag);
    addEventListener("dragleave", leave);
    addEventListener("drop", drop);
  }, []);
  return (
    <>
      <input
        id="import-file"
        type="file"
        accept=".csv,.txt,.jsonl,.ndjson,.json"
        aria-label="A file of plants"
        hidden
        onChange={({ currentTarget }) => {
          importFile(currentTarget.files);
          // Otherwise choosing the same file again would not be a change.
          currentTarget.value = "";
        }}
      />
      {isDragging.value && <p class="drop">Drop the file to see what it would change.</p>}
    </>
  );
}

function importFile(files: FileList | null): void {
  const [file] = files ?? [];
  if (file && isAllowed()) void imports.preview(file);
}

/** Says why not. */
function isAllowed(): boolean {
  if (!garden.canWrite.value) notify("This token can only read.", true);
  else if (imports.isRunning.value) notify("An import is running already.", true);
  else return true;
  return false;
}

/** Whether the page is ready for plants: somebody has signed in, and no dialog is open. */
const isReady = () => session.isSignedIn.value && document.querySelector("dialog:modal") === null;

/** One line is for the field that it's pasted into, except for rows of a spreadsheet. */
function paste(event: ClipboardEvent): void {
  const { clipboardData: data, target } = event;
  if (!data || !isReady() || (target instanceof Element && target.id === "filter")) return;
  const pasted = data.getData("text/plain");
  const text = pasted.replace(/[\r\n]+$/, "");
  const isList = /[\r\n\t]/.test(text);
  if (data.files.length === 0 && !isList && text === pasted) return;
  event.preventDefault();
  if (data.files.length > 0) importFile(data.files);
  // A single cell, which spreadsheets copy with a line break.
  else if (!isList) document.execCommand("insertText", false, text);
  else if (isAllowed()) {
    (document.activeElement as HTMLElement).blur();
    void imports.previewText(text);
  }
}

function drag(event: DragEvent): void {
  if (!event.dataTransfer?.types.includes("Files") || !session.isSignedIn.value) return;
  // Otherwise the browser would leave the page and open the file.
  event.preventDefault();
  isDragging.value = true;
}

function leave({ relatedTarget }: DragEvent): void {
  if (relatedTarget === null) isDragging.value = false;
}

function drop(event: DragEvent): void {
  if (!isDragging.value) return;
  event.preventDefault();
  isDragging.value = false;
  if (isReady()) importFile(event.dataTransfer?.files ?? null);
}
