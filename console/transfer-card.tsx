/** The card of an import or export: its progress, its result, and what to do next. */
import { useLayoutEffect, useRef } from "preact/hooks";
import type { Line } from "../client/files/rows.ts";
import { renderCount } from "../src/shared/text.ts";
import { Button, focus } from "./parts.tsx";
import { transfers } from "./state.ts";

/** A file with more invalid rows is wrong as a whole. */
const problemsShownMax = 1_000;

export function TransferCard() {
  const card = transfers.card.value;
  const wasShown = useRef(false);
  useLayoutEffect(() => {
    const isBusy = document.activeElement?.matches("input:not([type=file]), dialog *");
    // Not from somebody who is typing: a space would press it.
    if (card && !isBusy) document.querySelector<HTMLElement>("#transfer-actions button")?.focus();
    else if (!card && wasShown.current) focus("garden-title");
    wasShown.current = card !== undefined;
  }, [card?.actions.map(({ label }) => label).join()]);
  if (!card) return null;
  const { title, note, progress, actions, problems = [] } = card;
  const more = problems.length - problemsShownMax;
  return (
    <section id="transfer" class="card transfer" aria-labelledby="transfer-title">
      <h2 id="transfer-title">{title}</h2>
      <p id="transfer-note">{note}</p>
      {progress !== undefined && (
        <progress
          aria-labelledby="transfer-title"
          {...(progress !== null && { value: progress })}
        />
      )}
      <div id="transfer-actions" class="actions">
        {actions.map(({ label, run }, index) => {
          const isMain = index === 0 && actions.length > 1;
          return <Button key={label} class={isMain ? "primary" : ""} onClick={run} label={label} />;
        })}
      </div>
      {problems.length > 0 && (
        <ul
          id="transfer-problems"
          class="banner"
          tabIndex={0}
          aria-label="Rows that can’t be added">
          {problems.slice(0, problemsShownMax).map((row) => (
            <li key={renderLine(row)}>
              <b>{renderLine(row)}</b> <span>{row.error}</span>
            </li>
          ))}
          {more > 0 && <li>… and {renderCount(more, "more row")}</li>}
        </ul>
      )}
    </section>
  );
}

function renderLine({ line, column }: Line): string {
  return column === undefined ? `Line ${line}` : `Line ${line}, column ${column}`;
}
