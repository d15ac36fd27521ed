/** The page as a whole. Its first request asks for a token: see `session.ts`. */
import { signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { openAdd } from "./add-form.tsx";
import { GardenPage, refresh } from "./garden-page.tsx";
import {
  announcement,
  dismissUndo,
  hideNotice,
  nextUndo,
  notice,
  question,
  undo,
  undoing,
} from "./message.ts";
import { Button, Checkbox, Dialog, focus } from "./parts.tsx";
import { PlantCard } from "./plant-card.tsx";
import { Leaf, SignIn } from "./sign-in.tsx";
import { garden, selection, session, signOut, start } from "./state.ts";

const areShortcutsOn = signal(true);

/** The keys that do something now. The ones with an action work everywhere, while nobody types. */
function listKeys(): (readonly [key: string, label: string, act?: () => void])[] {
  const canWrite = garden.canWrite.value;
  const hasPlants = !garden.isBare.value;
  const hasRows = garden.list.value.size > 0;
  const isOn = areShortcutsOn.value;
  const keys = [
    [isOn && hasPlants, "/", "find", () => focus("filter")],
    [isOn && canWrite, "n", "new", openAdd],
    [isOn && canWrite && hasPlants, "x", "select", () => selection.toggle()],
    [isOn, "r", "refresh", refresh],
    [isOn && nextUndo.value, "z", "undo", () => void undo()],
    [hasRows, "↑ ↓", "between plants"],
    [hasRows && canWrite && !selection.isOn.value, "Del", "delete"],
    [true, "Esc", "close"],
  ] as const;
  return keys.flatMap(([isUseful, ...key]) => (isUseful ? [key] : []));
}

function Page() {
  useEffect(() => document.addEventListener("keydown", pressShortcut), []);
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
          {(session.isSignedIn.value || session.reason.value) && (
            <Button id="sign-out" class="link" onClick={signOut} label="Sign out" />
          )}
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        <SignIn />
        <GardenPage />
        <Confirm />
        <PlantCard />
      </main>
      <footer class="footer">{session.isSignedIn.value && <Keys />}</footer>
      <p id="announcer" class="unseen" role="status">
        {announcement.value}
      </p>
      <Notices />
    </>
  );
}

/** People can turn single keys off, as some need to. */
function Keys() {
  return (
    <p id="keys">
      <Checkbox id="use-shortcuts" isChecked={areShortcutsOn} label="Shortcuts" />
      {listKeys().map(([key, label]) => (
        <span key={key}>
          <kbd>{key}</kbd> {label}
        </span>
      ))}
    </p>
  );
}

function pressShortcut(event: KeyboardEvent): void {
  const { key, target, altKey, ctrlKey, metaKey } = event;
  const isTyping = target instanceof HTMLInputElement && target.type !== "checkbox";
  const isBehind = !session.isSignedIn.value || document.querySelector("dialog:modal") !== null;
  const act = listKeys().find(([name]) => name === key)?.[2];
  if (!act || isTyping || isBehind || altKey || ctrlKey || metaKey) return;
  event.preventDefault();
  act();
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
        <Button id="confirm-yes" class="danger" onClick={answer(true)} label={asked?.action} />
      </div>
    </Dialog>
  );
}

function Notices() {
  return (
    <div id="notices" class="notices" role="region" aria-label="Messages">
      {!session.isConnected.value && session.isSignedIn.value && (
        <p id="offline" class="notice trouble" role="status">
          Not connected, trying again…
        </p>
      )}
      {nextUndo.value && (
        <div id="undo" class="notice" role="group" aria-label="Last change">
          <p id="undo-text">{nextUndo.value.text}</p>
          <Button id="undo-button" task={undoing} onClick={undo} shortcut="z" label="Undo" />
          <Button id="undo-close" onClick={dismissUndo} label="Dismiss" />
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
