/** The page of a garden: its title, what to do with it, and its plants. */
import { useEffect } from "preact/hooks";
import { renderCount } from "../src/shared/text.ts";
import { ActivityPanel } from "./activity-panel.tsx";
import { isAdding, openAdd } from "./add-form.tsx";
import { describeError } from "./api.ts";
import { FileInput } from "./file-input.tsx";
import { ImportCard } from "./import-card.tsx";
import { Button, focus } from "./parts.tsx";
import { PlantRows } from "./plant-rows.tsx";
import { garden, imports, session } from "./state.ts";
import { KnownTags, Tags } from "./tags.tsx";
import { showAll, Toolbar } from "./toolbar.tsx";
import { describeList, describeNoMatch, isFiltered } from "./words.ts";

/** Its frame is the same from the first moment on, so that nothing moves when plants arrive. */
export function GardenPage() {
  const { isSignedIn } = session;
  const { isLoaded, error } = garden.list.value;
  const isLoading = !isLoaded && error.value === undefined;
  useEffect(() => {
    // Unless the address has led somewhere else.
    if (isSignedIn.value && document.activeElement === document.body) focus("garden-title");
  }, [isSignedIn.value]);
  return (
    <section
      id="garden"
      class={`garden ${isLoading ? "loading" : ""} ${garden.isEmpty.value ? "empty" : ""}`}
      aria-labelledby="garden-title"
      hidden={!isSignedIn.value}>
      <Head />
      <FileInput />
      <ImportCard />
      <KnownTags />
      <Toolbar />
      <div class="columns">
        <div class="sheet">
          <News />
          <PlantRows />
          <ListState key={isLoading ? "loading" : "loaded"} />
        </div>
        <aside class="by-tag" aria-labelledby="tags-title">
          <h2 id="tags-title">Tags</h2>
          <Tags />
          <ActivityPanel />
        </aside>
      </div>
    </section>
  );
}

/** Whose plants these are, and how many. */
function Head() {
  const summary = garden.summary.value;
  const name = summary?.me.garden;
  useEffect(() => {
    document.title = name === undefined ? "Plant Store" : `${name} – Plant Store`;
  }, [name]);
  return (
    <div class="title">
      <h1 id="garden-title" tabIndex={-1}>
        <bdi>{name ?? "Your garden"}</bdi>
      </h1>
      <p id="garden-note" class="note">
        {describeList(garden.list.value, summary)}
      </p>
      {isFiltered(garden.list.value.query) && (
        <Button id="show-all" class="link" onClick={showAll} label="Show all plants" />
      )}
      {!garden.canWrite.value && <span class="label">read only</span>}
    </div>
  );
}

/** The button that shows new plants points to where they are, above or below the view. */
function News() {
  const list = garden.list.value;
  const { plants, waiting } = list;
  const [first] = waiting;
  const end = first && (plants[garden.view().last] ?? plants.at(-1));
  const isBelow = first && end && list.isBefore(end, first);
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

/** What is shown instead of plants, or after the last one. */
function ListState() {
  const { size, isComplete, error, query } = garden.list.value;
  if (error.value !== undefined) return <Trouble error={error.value} />;
  if (!isComplete) {
    const found = query.q === undefined ? renderCount(size, "plant") : `${renderCount(size)} found`;
    return (
      <p id={size === 0 ? "loading" : "more"} class="note">
        {size === 0 ? "Loading plants…" : `Loading… ${found} so far`}
      </p>
    );
  }
  if (size > 0) return null;
  const isFilling = isAdding.value || imports.isRunning.value;
  if (!isFiltered(query)) return isFilling ? null : <Empty />;
  return (
    <div id="no-match" class="state">
      <h2>No plants found</h2>
      <p>{describeNoMatch(query)}</p>
      <Button id="clear-filter" onClick={showAll} label="Show all plants" />
    </div>
  );
}

function Empty() {
  const canWrite = garden.canWrite.value;
  return (
    <div id="empty" class="state">
      <h2>Nothing planted yet</h2>
      <p>
        {canWrite
          ? "This garden is empty. A plant needs a name; tag and id are optional."
          : "This garden is empty, and this token can only read."}
      </p>
      {canWrite && (
        <div class="actions">
          <Button id="first-add" class="primary" onClick={openAdd} label="Add the first plant" />
          <Button id="first-file" onClick={() => imports.open()} label="Import plants" />
        </div>
      )}
    </div>
  );
}

function Trouble({ error }: { error: unknown }) {
  const { query, isLoaded } = garden.list.value;
  const which = isLoaded ? "more plants" : "your plants";
  const retry = () => {
    garden.retry();
    focus("garden-title");
  };
  return (
    <div id="trouble" class="state" role="alert">
      <h2>{query.q === undefined ? `Couldn’t load ${which}` : "Couldn’t search for this"}</h2>
      <p id="trouble-note">{describeError(error)}</p>
      <Button id="retry" class="primary" onClick={retry} label="Try again" />
    </div>
  );
}
