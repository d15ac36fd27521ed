/** The card of an import: what a file looks like, what would happen, progress, what happened. */
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Change } from "../client/files/comparison.ts";
import type { Line, RefusedRow, ValidRow } from "../client/files/rows.ts";
import { renderCount } from "../src/shared/text.ts";
import { chooseFile, download } from "./file-input.tsx";
import { type ImportCard as Card, describePlan, type Preview } from "./imports.ts";
import { message, nextUndo } from "./message.ts";
import { Button, focus, onEscape, onText, UndoButton } from "./parts.tsx";
import { imports } from "./state.ts";

/** A file with more invalid rows is wrong as a whole. */
const problemsShownMax = 1_000;
/** Enough to see whether the columns are right, and what kind of changes they are. */
const rowsShownMax = 5;
const sample = "name,tag\nMonstera,living room\nIvy,shade\n";

export function ImportCard() {
  const card = imports.card.value;
  const wasShown = useRef(false);
  useLayoutEffect(() => {
    if (card) focusNext();
    else if (wasShown.current) leave();
    wasShown.current = card !== undefined;
  }, [card?.kind, card?.kind === "result" && card.undo]);
  if (!card) return null;
  return (
    <section
      id="import"
      class="card import"
      aria-labelledby="import-title"
      onKeyDown={onEscape((event) => {
        event.stopPropagation();
        imports.close();
      })}>
      <h2 id="import-title">{card.kind === "format" ? "Import plants" : card.title}</h2>
      {renderBody(card)}
    </section>
  );
}

/** Goes to the button that leads on, but not from somebody who is typing: a space would press it. */
function focusNext(): void {
  const isBusy = document.activeElement?.matches("input:not([type=file]), textarea, dialog *");
  if (!isBusy) document.getElementById("import-next")?.focus();
}

/** Goes back to the button that opened it, unless that is in a menu, which is closed. */
function leave(): void {
  const isInMenu = document.querySelector("dialog #open-import") !== null;
  focus(isInMenu ? "garden-title" : "open-import");
}

const close = () => imports.close();

function renderBody(card: Card) {
  switch (card.kind) {
    case "format":
      return <Formats />;
    case "running":
      return (
        <>
          <p id="import-note">{card.note}</p>
          <progress
            aria-labelledby="import-title"
            {...(card.progress !== null && { value: card.progress })}
          />
          <div class="actions">
            <Button
              id="import-next"
              onClick={() => card.stop.press()}
              label={card.stop.asked.aborted ? "Stop now" : "Stop"}
            />
          </div>
        </>
      );
    case "preview":
      return <Plan card={card} />;
    case "result":
      return (
        <>
          <p id="import-note">{card.note}</p>
          <Problems rows={card.problems ?? []} />
          <div class="actions">
            {/* Not "Undo", where "Stop" has been a moment ago. */}
            <Button id="import-next" onClick={close} label="Close" />
            {card.undo && nextUndo.value === card.undo && <UndoButton id="import-undo" />}
            {card.isRefused && <Button onClick={chooseFile} label="Choose another file" />}
          </div>
        </>
      );
  }
}

/** What somebody types or pastes as rows. It stays until an import is sent. */
const typedRows = signal("");

function Formats() {
  return (
    <>
      <p>
        Choose a file, or drop one on this page: CSV, JSON Lines or JSON. Only a name is needed.
      </p>
      <div class="ways">
        <div class="field">
          <p>It begins with the names of its columns:</p>
          <pre class="sample">{sample}</pre>
        </div>
        <div class="field">
          <label for="import-text">Or paste rows of a spreadsheet, or a list of names</label>
          <textarea
            id="import-text"
            rows={4}
            value={typedRows.value}
            onInput={onText((typed) => {
              typedRows.value = typed;
            })}
          />
        </div>
      </div>
      <div class="actions">
        <Button id="import-next" class="primary" onClick={chooseFile} label="Choose a file" />
        <Button id="import-sample" onClick={downloadSample} label="Download this sample" />
        {typedRows.value.trim() !== "" && (
          <Button
            id="import-typed"
            class="primary"
            onClick={() => imports.previewText(typedRows.value)}
            label="Continue"
          />
        )}
        <Button onClick={close} label="Close" />
      </div>
    </>
  );
}

function downloadSample(): void {
  download(new Blob([sample], { type: "text/csv" }), "sample.csv");
}

function Plan({ card }: { card: Preview }) {
  const { comparison, isChanging, isRepeating } = card;
  const { added, changes, alreadyHere, refused } = comparison;
  const label = describePlan(card);
  return (
    <>
      <p id="import-note">{card.note}</p>
      <dl id="import-rows" class="facts">
        {changes.slice(0, rowsShownMax).map((change) => (
          <ChangedRow key={change.before.id} {...change} />
        ))}
        <More count={changes.length - rowsShownMax} noun="change" />
        {added.slice(0, rowsShownMax).map((row) => (
          <NewRow key={renderLine(row)} {...row} />
        ))}
        <More count={added.length - rowsShownMax} noun="new plant" />
      </dl>
      {changes.length > 0 && (
        <Choice
          id="import-changes"
          isChosen={isChanging}
          onChoose={(isChosen) => imports.choose({ isChanging: isChosen })}
          label="Change plants that are here already"
        />
      )}
      {alreadyHere.length > 0 && (
        <Choice
          id="import-repeats"
          isChosen={isRepeating}
          onChoose={(isChosen) => imports.choose({ isRepeating: isChosen })}
          label={`Add the ${renderCount(alreadyHere.length)} that ${alreadyHere.length === 1 ? "is" : "are"} here already once more`}
        />
      )}
      <div class="actions">
        {label && <Button id="import-next" class="primary" onClick={send} label={label} />}
        <Button id={label ? undefined : "import-next"} onClick={close} label="Cancel" />
      </div>
      <Problems rows={refused} />
    </>
  );
}

function send(): void {
  typedRows.value = "";
  void imports.send();
}

interface ChoiceProps {
  readonly id: string;
  readonly isChosen: boolean;
  readonly onChoose: (isChosen: boolean) => void;
  readonly label: string;
}

function Choice({ id, isChosen, onChoose, label }: ChoiceProps) {
  return (
    <label class="check">
      <input
        id={id}
        type="checkbox"
        checked={isChosen}
        onChange={({ currentTarget }) => onChoose(currentTarget.checked)}
      />{" "}
      {label}
    </label>
  );
}

/** `7 Fern → Boston fern (tag shade → hall)` */
function ChangedRow({ before, set }: Change) {
  const { name = before.name, tag = before.tag } = set;
  return (
    <div>
      <dt>{String(before.id)}</dt>
      <dd>
        <Step before={before.name} after={name} />
        {tag !== before.tag && (
          <>
            {" (tag "}
            <Step before={before.tag} after={tag} />
            {")"}
          </>
        )}
      </dd>
    </div>
  );
}

function Step({ before, after }: { before: string; after: string }) {
  if (before === after) return <bdi>{after}</bdi>;
  return (
    <>
      <del>
        <bdi>{before || "none"}</bdi>
      </del>
      {" → "}
      <ins>
        <bdi>{after || "none"}</bdi>
      </ins>
    </>
  );
}

function NewRow({ draft }: ValidRow) {
  const { name, tag = "" } = draft;
  return (
    <div>
      <dt>new</dt>
      <dd>
        <bdi>{name}</bdi> {tag !== "" && <bdi class="label">{tag}</bdi>}
        {draft.id !== undefined && message` with the id ${[String(draft.id)]}`}
      </dd>
    </div>
  );
}

function More({ count, noun }: { count: number; noun: string }) {
  if (count <= 0) return null;
  return (
    <div>
      <dt />
      <dd class="note">… and {renderCount(count, `more ${noun}`)}</dd>
    </div>
  );
}

function Problems({ rows }: { rows: readonly RefusedRow[] }) {
  const more = rows.length - problemsShownMax;
  if (rows.length === 0) return null;
  return (
    <ul id="import-problems" class="banner" tabIndex={0} aria-label="Rows that can’t be added">
      {rows.slice(0, problemsShownMax).map((row) => (
        <li key={renderLine(row)}>
          <b>{renderLine(row)}</b> <span>{row.error}</span>
        </li>
      ))}
      {more > 0 && <li>… and {renderCount(more, "more row")}</li>}
    </ul>
  );
}

function renderLine({ line, column }: Line): string {
  return column === undefined ? `Line ${line}` : `Line ${line}, column ${column}`;
}
