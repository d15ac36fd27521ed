/** The page of a garden: its title, what to do with it, and its plants. */
import { useEffect } from "preact/hooks";
import { renderCount } from "../client/files/renderer.ts";
import { ActivityPanel, toggleActivity } from "./activity-panel.tsx";
import { AddForm, closeAdd, openAdd } from "./add-form.tsx";
import { describeError } from "./api.ts";
import { hideNotice } from "./message.ts";
import { Button, focus } from "./parts.tsx";
import { focusFirstRow, PlantRows } from "./plant-rows.tsx";
import { activity, garden, isAdding, session, transfers } from "./state.ts";
import { KnownTags, Tags } from "./tags.tsx";
import { showAll, Toolbar } from "./toolbar.tsx";
import { TransferCard } from "./transfer-card.tsx";
import { describeExtent, describeMe, describeNoMatch, describeSize, isFiltered } from "./words.ts";

export function GardenPage() {
  const { isSignedIn } = session;
  useEffect(() => {
    if (isSignedIn.value) focus("garden-title");
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
          <PlantRows />
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
  const enterList = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown") return;
    event.preventDefault();
    focusFirstRow();
  };
  return (
    <>
      <p id="me" class="note me">
        {summary && describeMe(summary.me)}
      </p>
      <div class="title">
        <h1 id="garden-title" tabIndex={-1} onKeyDown={enterList}>
          {describeSize(list, summary)}
        </h1>
        <p id="garden-note" class="note">
          {describeExtent(list, summary)}
        </p>
        <Button id="refresh" class="link" onClick={refresh} label="Refresh" />
        {summary?.me.lastEvent !== undefined && (
          <Button
            id="open-activity"
            class="link"
            aria-expanded={activity.isOpen.value}
            onClick={toggleActivity}
            label="Activity"
          />
        )}
        {!garden.isBare.value && <Actions />}
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

function Actions() {
  return (
    <div class="actions">
      {garden.canWrite.value && (
        <>
          <Button
            id="open-add"
            class="primary"
            aria-expanded={isAdding.value}
            onClick={isAdding.value ? closeAdd : openAdd}
            shortcut="n"
            label="Add a plant"
          />
          <ImportButton id="choose-file" label="Import" />
        </>
      )}
      <Button
        id="export"
        disabled={transfers.isRunning.value}
        onClick={() => transfers.export(download)}
        label="Export"
      />
    </div>
  );
}

function ImportButton({ id, label }: { id: string; label: string }) {
  const chooseFile = () => document.getElementById("import-file")?.click();
  return (
    <Button id={id} disabled={transfers.isRunning.value} onClick={chooseFile}>
      {label}
    </Button>
  );
}

function download(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // The browser may not have read it yet.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
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
        <Button id="news" class={isBelow ? "below" : ""} onClick={() => garden.showWaiting()}>
          {renderCount(waiting.length, "new plant")}
        </Button>
      )}
    </div>
  );
}

/** What is shown instead of plants. */
function ListState() {
  const { size, isComplete, isLoaded, error, query } = garden.list.value;
  const isEmpty = isComplete && size === 0;
  if (error.value !== undefined && size === 0) return <Trouble error={error.value} />;
  if (isEmpty && isFiltered(query)) {
    return (
      <div id="no-match" class="state">
        <h2>No plants found</h2>
        <p>{describeNoMatch(query)}</p>
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
      <svg class="sprout" viewBox="0 0 120 120" aria-hidden="true">
        <path class="pot" d="M34 78h52l-6 30a5 5 0 0 1-5 4H45a5 5 0 0 1-5-4zM30 68h60v10H30z" />
        <path class="stem" d="M60 68V34" />
        <path
          class="leaf"
          d="M60 46C44 46 36 38 34 24c15 0 25 7 26 22zM60 36c1-14 9-22 25-24 0 15-8 24-25 24z"
        />
      </svg>
      <h2>Nothing planted yet</h2>
      <p>
        {canWrite
          ? "This garden is empty. A plant needs a name; tag and id are optional."
          : "This garden is empty, and this token can only read."}
      </p>
      {canWrite && (
        <div class="actions">
          <Button id="first-add" class="primary" onClick={openAdd}>
            Add the first plant
          </Button>
          <ImportButton id="first-file" label="Import a file" />
        </div>
      )}
    </div>
  );
}

function Trouble({ error }: { error: unknown }) {
  const isSearch = garden.list.value.query.q !== undefined;
  const retry = () => {
    void garden.refresh();
    focus("garden-title");
  };
  return (
    <div id="trouble" class="state trouble" role="alert">
      <h2>{isSearch ? "Couldn’t search for this" : "Couldn’t load your plants"}</h2>
      <p id="trouble-note">{describeError(error)}</p>
      <Button id="retry" class="primary" onClick={retry} label="Try again" />
    </div>
  );
}

/** What follows the last row. */
function More() {
  const { size, next, error, query } = garden.list.value;
  const isLoading = garden.isLoading.value && !garden.isComing.value;
  const hasFailed = error.value !== undefined && size > 0;
  const found = query.q === undefined ? renderCount(size, "plant") : `${renderCount(size)} found`;
  const retry = () => {
    void garden.loadMore(true);
    focus("garden-title");
  };
  return (
    <div class="more">
      {(hasFailed || (isLoading && next !== undefined)) && (
        <p id="more-note" class="note">
          {hasFailed
            ? `Couldn’t load more plants. ${describeError(error.value)}`
            : `Loading… ${found} so far`}
        </p>
      )}
      {next !== undefined && !isLoading && (
        <Button id="load-more" onClick={retry} label={hasFailed ? "Try again" : "Load more"} />
      )}
    </div>
  );
}
