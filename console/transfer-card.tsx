/** The card of an import or export: its progress, its result, and what to do next. */
import { useLayoutEffect, useRef } from "preact/hooks";
import { renderCount } from "../client/files/renderer.ts";
import type { Line } from "../client/files/rows.ts";
import { Words } from "./parts.tsx";
import { focusTitle } from "./plant-rows.tsx";
import { transfers } from "./state.ts";

/** A file with more invalid rows is wrong as a whole. */
const problemsShownMax = 1_000;

export function TransferCard() {
  const card = transfers.card.value;
  const actions = useRef<HTMLDivElement>(null);
  const wasShown = useRef(false);
  const labels = card?.actions.map(({ label }) => label).join();
  useLayoutEffect(() => {
    actions.current?.querySelector("button")?.focus();
    if (!card && wasShown.current) focusTitle();
    wasShown.current = card !== undefined;
  }, [labels]);
  if (!card) return null;
  const { title, note, progress, problems = [], samples = [] } = card;
  const more = problems.length - problemsShownMax;
  return (
    <section id="transfer" class="card transfer" aria-labelledby="transfer-title">
      <h2 id="transfer-title">
        <Words text={title} />
      </h2>
      <p id="transfer-note">{note}</p>
      {progress !== undefined && (
        <progress
          id="transfer-progress"
          aria-labelledby="transfer-title"
          {...(progress !== null && { value: progress })}
        />
      )}
      <div id="transfer-actions" class="actions" ref={actions}>
        {card.actions.map(({ label, run }, index) => (
          <button
            key={label}
            type="button"
            class={index === 0 && card.actions.length > 1 ? "primary" : ""}
            onClick={run}>
            {label}
          </button>
        ))}
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
      {samples.length > 0 && (
        <table id="transfer-preview">
          <caption>
            {samples.length === 1 ? "The first row" : `The first ${samples.length} rows`}
          </caption>
          <thead>
            <tr>
              {["Id", "Name", "Tag"].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody id="transfer-samples">
            {samples.map(({ draft }, index) => (
              <tr key={index}>
                <td class={draft.id === undefined ? "absent" : ""}>
                  {String(draft.id ?? "next free")}
                </td>
                <td>
                  <bdi>{draft.name}</bdi>
                </td>
                <td>
                  <bdi>{draft.tag ?? ""}</bdi>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function renderLine({ line, column }: Line): string {
  return column === undefined ? `Line ${line}` : `Line ${line}, column ${column}`;
}
