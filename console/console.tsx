/** The page as a whole. Its first request asks for a token: see `session.ts`. */
import { signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { renderCount } from "../src/shared/text.ts";
import { openAdd } from "./add-form.tsx";
import { GardenPage } from "./garden-page.tsx";
import { MeMenu } from "./me-menu.tsx";
import {
  announcement,
  hideNotice,
  hideUndo,
  isUndoShown,
  nextUndo,
  notice,
  question,
  undo,
} from "./message.ts";
import { Button, Checkbox, Dialog, focus, isTyping, UndoButton } from "./parts.tsx";
import { focusFirstRow, selectFocused } from "./plant-rows.tsx";
import { Leaf, SignIn } from "./sign-in.tsx";
import { exports, garden, imports, session, start } from "./state.ts";
import { stopSelecting } from "./toolbar.tsx";

const areLettersOn = signal(true);
const areKeysShown = signal(false);

/** The keys that work while nobody types. Some people need to turn the letters off. */
const keys: readonly {
  readonly key: string;
  readonly label: string;
  readonly isWrite?: boolean;
  readonly act?: () => void;
}[] = [
  { key: "/", label: "Search", act: () => focus("filter") },
  { key: "n", label: "Add a plant", isWrite: true, act: openAdd },
  { key: "x", label: "Select the row, or not", isWrite: true, act: () => selectFocused(false) },
  { key: "X", label: "Select up to the row", isWrite: true, act: () => selectFocused(true) },
  { key: "z", label: "Undo", isWrite: true, act: undoShown },
  { key: "?", label: "Show these keys", act: showKeys },
  { key: "↓ ↑", label: "Go to the plants, and between them" },
  { key: "Shift ↓ ↑", label: "Select the next plant, too", isWrite: true },
  { key: "Enter", label: "Edit the plant, save it" },
  { key: "Ctrl V", label: "Add a copied list or rows of a spreadsheet", isWrite: true },
  { key: "Del", label: "Delete the plant, or the selected ones", isWrite: true },
  { key: "Esc", label: "Leave, close, select nothing" },
];

function showKeys(): void {
  areKeysShown.value = true;
}

function Page() {
  useEffect(() => document.addEventListener("keydown", pressKey), []);
  return (
    <>
      <Button class="skip" onClick={() => focus("main")} label="Skip to the content" />
      <header class="masthead">
        <p class="wordmark">
          <Leaf />
          Plant Store
        </p>
        <nav aria-label="Pages">
          {/* biome-ignore lint/security/noBlankTarget: our own page, which asks this one for the token */}
          <a href="docs" target="_blank" rel="opener">
            API<span class="if-wide"> reference</span>
          </a>
          <MeMenu />
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        <SignIn />
        <GardenPage />
        <Confirm />
        <KeysDialog />
      </main>
      <footer class="footer">
        {session.isSignedIn.value && garden.list.value.isLoaded && (
          <Button
            id="open-keys"
            class="link if-keys"
            onClick={showKeys}
            shortcut="?"
            label="Keys"
          />
        )}
      </footer>
      <p id="announcer" class="unseen" role="status">
        {/* A new element each time, or the same words again would stay unsaid. */}
        <span key={announcement.value.number}>{announcement.value.text}</span>
      </p>
      <Notices />
    </>
  );
}

function KeysDialog() {
  const close = () => {
    areKeysShown.value = false;
  };
  return (
    <Dialog
      id="keys"
      class="card dialog"
      aria-labelledby="keys-title"
      isOpen={areKeysShown.value && session.isSignedIn.value}
      onLeave={close}>
      <h2 id="keys-title">Keys</h2>
      <dl class="keys">
        {keys
          .filter(({ isWrite }) => !isWrite || garden.canWrite.value)
          .map(({ key, label }) => (
            <div key={key}>
              <dt>
                {key.split(" ").map((name) => (
                  <kbd key={name}>{name}</kbd>
                ))}
              </dt>
              <dd>{label}</dd>
            </div>
          ))}
      </dl>
      <Checkbox id="use-letters" isChecked={areLettersOn} label="Use single letters as keys" />
      <div class="actions">
        <Button id="close-keys" autofocus onClick={close} label="Close" />
      </div>
    </Dialog>
  );
}

function pressKey(event: KeyboardEvent): void {
  const { key, target, altKey, ctrlKey, metaKey } = event;
  const element = target instanceof Element ? target : document.body;
  // In the row that is edited, letters run no commands, even while it asks something.
  const isBusy = isTyping() || element.closest("#edit") !== null;
  const isBehind = document.querySelector("dialog:modal, :popover-open") !== null;
  if (!session.isSignedIn.value || isBusy || isBehind || altKey || ctrlKey || metaKey) return;
  const isElsewhere = !element.closest("#rows, .events, #add");
  const letter = keys.find((each) => each.act && each.key === key);
  const isLetterOn = areLettersOn.value && (!letter?.isWrite || garden.canWrite.value);
  if (key === "Escape") leave();
  else if (key === "ArrowDown" && isElsewhere) focusFirstRow();
  else if (letter?.act && isLetterOn) letter.act();
  else return;
  event.preventDefault();
}

/** Nobody should undo what the page doesn't show. */
function undoShown(): void {
  if (isUndoShown.value) void undo();
  else isUndoShown.value = true;
}

function leave(): void {
  if (!stopSelecting()) imports.close();
}

function Confirm() {
  const asked = question.value;
  const answer = (isYes: boolean) => () => asked?.answer(isYes);
  return (
    <Dialog
      id="confirm"
      class="card dialog"
      aria-labelledby="confirm-title"
      aria-describedby="confirm-note"
      isOpen={asked !== undefined && session.isSignedIn.value}
      onLeave={answer(false)}>
      <h2 id="confirm-title">{asked?.title}</h2>
      <p id="confirm-note">{asked?.note}</p>
      <div class="actions">
        <Button autofocus onClick={answer(false)} label="Cancel" />
        <Button id="confirm-yes" onClick={answer(true)} label={asked?.action} />
      </div>
    </Dialog>
  );
}

function Notices() {
  const card = imports.card.value;
  const exporting = exports.running.value;
  // The result of an import has its own button.
  const isUndoElsewhere = card?.kind === "result" && card.undo === nextUndo.value;
  return (
    <div id="notices" class="notices" role="region" aria-label="Messages">
      {!session.isConnected.value && session.isSignedIn.value && (
        <p id="offline" class="notice trouble" role="status">
          Not connected, trying again…
        </p>
      )}
      {exporting && exporting.exported > 0 && (
        <div id="exporting" class="notice" role="group" aria-label="Export">
          <p>Exporting… {renderCount(exporting.exported, "plant")} so far</p>
          <Button onClick={exporting.stop} label="Stop" />
        </div>
      )}
      {nextUndo.value && isUndoShown.value && !isUndoElsewhere && (
        <div id="undo" class="notice" role="group" aria-label="Last change">
          <p id="undo-text">{nextUndo.value.text}</p>
          <UndoButton id="undo-button" />
          <Button id="undo-close" onClick={hideUndo} label="Dismiss" />
        </div>
      )}
      {notice.value && (
        <div id="notice" class={`notice ${notice.value.isTrouble ? "trouble" : ""}`}>
          <p>{notice.value.text}</p>
          <Button onClick={hideNotice} label="Dismiss" />
        </div>
      )}
    </div>
  );
}

render(<Page />, document.body);
start();
