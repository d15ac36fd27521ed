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

/** Single keys, while nobody types, as far as they do something now. */
function listShortcuts(): readonly (readonly [key: string, label: string, act: () => void])[] {
  const writing = [
    ["n", "new", openAdd],
    ["x", "select", () => selection.toggle()],
  ] as const;
  return [
    ["/", "find", () => focus("filter")],
    ...(garden.canWrite.value ? writing : []),
    ["r", "refresh", refresh],
    ...(nextUndo.value ? [["z", "undo", () => void undo()] as const] : []),
  ];
}

function Page() {
  useEffect(() => document.addEventListener("keydown", pressShortcut), []);
  // A plain link would change the address, which says what the page shows.
  const skip = (event: Event) => {
    event.preventDefault();
    focus("main");
  };
  return (
    <>
      <a id="skip" class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header class="masthead">
        <p class="wordmark">
          <Leaf />
          Plant Store
        </p>
        <nav aria-label="Pages">
          <a href="docs" target="_blank" rel="noopener">
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

/** The keys that work now. People can turn single keys off, as some need to. */
function Keys() {
  const hasPlants = !garden.isBare.value;
  const canDelete = hasPlants && garden.canWrite.value && !selection.isOn.value;
  const keys: (readonly [keys: string, label: string, ...unknown[]])[] = [
    ...(areShortcutsOn.value ? listShortcuts() : []),
    ...(hasPlants ? [["↑ ↓", "between plants"] as const] : []),
    ...(canDelete ? [["Del", "delete"] as const] : []),
    ["Esc", "close"],
  ];
  return (
    <p id="keys">
      <Checkbox id="use-shortcuts" isChecked={areShortcutsOn} label="Shortcuts" />
      {keys.map(([key, label]) => (
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
  const shortcut = listShortcuts().find(([name]) => name === key);
  const isOff = !areShortcutsOn.value || isTyping || isBehind || altKey || ctrlKey || metaKey;
  if (!shortcut || isOff) return;
  event.preventDefault();
  shortcut[2]();
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
          <p id="notice-text">{notice.value.text}</p>
          <Button id="notice-close" onClick={hideNotice} label="Dismiss" />
        </div>
      )}
    </div>
  );
}

render(<Page />, document.body);
start();
