/** The page of a garden: its title, what to do with it, and its plants. */
import { useEffect, useRef } from "preact/hooks";
import { renderCount } from "../client/files/renderer.ts";
import { ActivityPanel, toggleActivity } from "./activity-panel.tsx";
import { AddForm, closeAdd, openAdd } from "./add-form.tsx";
import { describeError } from "./api.ts";
import { hideNotice } from "./message.ts";
import { Button, Words } from "./parts.tsx";
import { focusFirstRow, focusTitle, PlantRows } from "./plant-rows.tsx";
import { activity, chooseFile, garden, isAdding, session, transfers } from "./state.ts";
import { KnownTags, Tags } from "./tags.tsx";
import { showAll, Toolbar } from "./toolbar.tsx";
import { TransferCard } from "./transfer-card.tsx";
import { describeExtent, describeMe, describeNoMatch, describeSize, isFiltered } from "./words.ts";

/** How close to the window the end of the list gets before the next page loads. */
const loadAheadPixels = 1_600;

export function GardenPage() {
  const { isSignedIn } = session;
  useEffect(() => {
    if (isSignedIn.value) document.getElementById("garden-title")?.focus();
  }, [isSignedIn.value]);
  return (
    <section
      id="garden"
      class={`garden ${garden.isBare.value ? "bare" : ""}`}
      aria-labelledby="garden-title"
      hidden={!isSignedIn.value}>
      <Head />
      <TransferCard />
      <AddForm />
      <KnownTags />
      <Toolbar />
      <div class="columns">
        <aside class="by-tag" aria-labelledby="tags-title">
          <h2 id="tags-title">Plants by tag</h2>
          <Tags />
          <ActivityPanel />
        </aside>
        <div class="sheet">
          <News />
          <Table />
          <ListState />
          <More />
        </div>
      </div>
    </section>
  );
}

export function refresh(): void {
  hideNotice();
  void garden.refresh();
}

function Head() {
  const summary = garden.summary.value;
  const list = garden.list.value;
  const isBusy = transfers.isRunning.value;
  const hasEvents = summary?.me.lastEvent !== undefined;
  const enterList = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    focusFirstRow();
  };
  return (
    <>
      <p id="me" class="note me">
        {summary && <Words text={describeMe(summary.me)} />}
      </p>
      <div class="title">
        <h1 id="garden-title" tabIndex={-1} onKeyDown={enterList}>
          {describeSize(list, summary)}
        </h1>
        <p id="garden-note" class="note">
          <Words text={describeExtent(list, summary)} />
        </p>
        <Button id="refresh" class="link" onClick={refresh} label="Refresh" />
        {hasEvents && (
          <Button
            id="open-activity"
            class="link"
            aria-expanded={activity.isOpen.value}
            aria-controls="activity"
            onClick={toggleActivity}
            label="Activity"
          />
        )}
        {!garden.isBare.value && (
          <div class="actions">
            {garden.canWrite.value && (
              <>
                <Button
                  id="open-add"
                  class="primary writing"
                  aria-expanded={isAdding.value}
                  aria-controls="add"
                  onClick={() => (isAdding.value ? closeAdd() : openAdd())}
                  label="Add a plant"
                  shortcut="n"
                />
                <Button
                  id="choose-file"
                  class="writing"
                  disabled={isBusy}
                  onClick={chooseFile}
                  label="Import"
                />
              </>
            )}
            <Button
              id="export"
              disabled={isBusy}
              onClick={() => void transfers.export()}
              label="Export"
            />
          </div>
        )}
        <input
          id="import-file"
          type="file"
          accept=".csv,.txt,.jsonl,.ndjson,.json"
          aria-label="A file of plants"
          hidden
          onChange={({ currentTarget }) => {
            const [file] = currentTarget.files ?? [];
            if (file) void transfers.preview(file);
            // Otherwise choosing the same file again would not be a change.
            currentTarget.value = "";
          }}
        />
      </div>
    </>
  );
}

/** The button that shows new plants points to where they are, above or below the view. */
function News() {
  const list = garden.list.value;
  const { plants, waiting } = list;
  const [first] = waiting;
  const end = first && (plants[garden.view().last] ?? plants.at(-1));
  const isBelow = first && end && list.isBefore(end.id, first.id);
  return (
    <div class="news" role="status">
      {first && (
        <Button
          id="news"
          class={isBelow ? "below" : ""}
          onClick={() => garden.showWaiting()}
          label={renderCount(waiting.length, "new plant")}
        />
      )}
    </div>
  );
}

function Table() {
  const { plants, size } = garden.list.value;
  // The longest id is the first or the last.
  const ends = [plants[0], plants.at(-1)].map((plant) => String(plant?.id ?? "").length);
  const idCharacters = Math.max(2, ...ends);
  return (
    <div
      id="table"
      class={`table ${garden.selection.isOn.value ? "selecting" : ""}`}
      role="table"
      aria-labelledby="garden-title"
      aria-rowcount={plants.length + 1}
      style={{ "--id-characters": String(idCharacters) }}
      hidden={size === 0}>
      <div role="rowgroup">
        <div class="row head" role="row" aria-rowindex={1}>
          <span class="box" role="columnheader">
            <span class="unseen">Selected</span>
          </span>
          {(["number Id", "name Name", "tag Tag"] as const).map((column) => (
            <span key={column} class={column.split(" ")[0]} role="columnheader">
              {column.split(" ")[1]}
            </span>
          ))}
        </div>
      </div>
      <PlantRows />
    </div>
  );
}

/** What is shown instead of plants. */
function ListState() {
  const { size, isComplete, isLoaded, error, query } = garden.list.value;
  const isEmpty = isComplete && size === 0;
  if (error !== undefined && size === 0) return <Trouble error={error} />;
  if (isEmpty && isFiltered(query)) {
    return (
      <div id="no-match" class="state">
        <h2>No plants found</h2>
        <p>
          <Words text={describeNoMatch(query)} />
        </p>
        <Button id="clear-filter" onClick={showAll} label="Show all plants" />
      </div>
    );
  }
  if (isEmpty) return <Empty />;
  if (isLoaded) return null;
  return (
    <div id="loading" class="skeleton" role="status">
      <span class="unseen">Loading plants</span>
    </div>
  );
}

function Empty() {
  const canWrite = garden.canWrite.value;
  return (
    <div id="empty" class="state">
      <Sprout>
        <path class="stem" d="M60 68V34" />
        <path
          class="leaf"
          d="M60 46C44 46 36 38 34 24c15 0 25 7 26 22zM60 36c1-14 9-22 25-24 0 15-8 24-25 24z"
        />
      </Sprout>
      <h2>Nothing planted yet</h2>
      <p>
        {canWrite
          ? "This garden is empty. A plant needs a name; tag and id are optional."
          : "This garden is empty, and this token can only read."}
      </p>
      {canWrite && (
        <div class="actions">
          <Button
            id="first-add"
            class="primary writing"
            onClick={openAdd}
            label="Add the first plant"
          />
          <Button
            id="first-file"
            class="writing"
            disabled={transfers.isRunning.value}
            onClick={chooseFile}
            label="Import a file"
          />
        </div>
      )}
    </div>
  );
}

function Trouble({ error }: { error: unknown }) {
  const isSearch = garden.list.value.query.q !== undefined;
  const retry = () => {
    void garden.refresh();
    focusTitle();
  };
  return (
    <div id="trouble" class="state trouble" role="alert">
      <Sprout>
        <path class="stem" d="M60 68V50C60 38 66 34 76 36" />
        <path
          class="wilted"
          d="M76 36c12 2 18 10 18 24-12-3-19-11-18-24zM61 47c-12-3-21 2-26 14 12 4 21 0 26-14z"
        />
      </Sprout>
      <h2>{isSearch ? "Couldn’t search for this" : "Couldn’t load your plants"}</h2>
      <p id="trouble-note">{describeError(error)}</p>
      <Button id="retry" class="primary" onClick={retry} label="Try again" />
    </div>
  );
}

function Sprout({ children }: { children: preact.ComponentChildren }) {
  return (
    <svg class="sprout" viewBox="0 0 120 120" aria-hidden="true">
      <path class="pot" d="M34 78h52l-6 30a5 5 0 0 1-5 4H45a5 5 0 0 1-5-4zM30 68h60v10H30z" />
      {children}
    </svg>
  );
}

/** What follows the last row. */
function More() {
  const { size, next, error, query } = garden.list.value;
  const isLoading = garden.isLoading.value && !garden.isComing.value;
  const hasFailed = error !== undefined && size > 0;
  const found = query.q === undefined ? renderCount(size, "plant") : `${renderCount(size)} found`;
  const end = useRef<HTMLButtonElement>(null);
  const isMore = next !== undefined && !isLoading;
  // Observed again after every page: an end that stays in view would not be reported twice.
  useEffect(() => {
    if (!end.current) return;
    const observer = new IntersectionObserver(
      // Under load several entries arrive together; the last one is current.
      (entries) => entries.at(-1)?.isIntersecting && void garden.loadMore(),
      { rootMargin: `${loadAheadPixels}px` },
    );
    observer.observe(end.current);
    return () => observer.disconnect();
  });
  const retry = () => {
    void garden.retryMore();
    focusTitle();
  };
  return (
    <div class="more">
      {(hasFailed || (isLoading && next !== undefined)) && (
        <p id="more-note" class="note">
          {hasFailed
            ? `Couldn’t load more plants. ${describeError(error)}`
            : `Loading… ${found} so far`}
        </p>
      )}
      {isMore && (
        <Button
          id="load-more"
          ref={end}
          onClick={retry}
          label={hasFailed ? "Try again" : "Load more"}
        />
      )}
    </div>
  );
}
