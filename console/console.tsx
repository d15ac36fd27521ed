/** The page as a whole. Its first request asks for a token: see `session.ts`. */
import { signal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { openAdd } from "./add-form.tsx";
import { GardenPage, refresh } from "./garden-page.tsx";
import { announcement, hideNotice, notice, question } from "./message.ts";
import { Button, Dialog, Words } from "./parts.tsx";
import { PlantCard } from "./plant-card.tsx";
import { Leaf, SignIn } from "./sign-in.tsx";
import { garden, session, signOut, start } from "./state.ts";

const areShortcutsOn = signal(true);

/** Single keys, while nobody types, as far as they do something now. */
function listShortcuts(): readonly (readonly [key: string, label: string, act: () => void])[] {
  const { canWrite, selection, undo } = garden;
  const writing = [
    ["n", "new", openAdd],
    ["x", "select", () => selection.toggle()],
  ] as const;
  return [
    ["/", "find", () => document.getElementById("filter")?.focus()],
    ...(canWrite.value ? writing : []),
    ["r", "refresh", refresh],
    ...(undo.next.value ? [["z", "undo", () => void undo.undo()] as const] : []),
  ];
}

function Page() {
  const { isSignedIn, hasToken } = session;
  useEffect(() => document.addEventListener("keydown", pressShortcut), []);
  // A plain link would change the address, which says what the page shows.
  const skip = (event: Event) => {
    event.preventDefault();
    document.getElementById("main")?.focus();
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
          {hasToken.value && (
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
      <footer class="footer">{isSignedIn.value && <Keys />}</footer>
      <p id="announcer" class="unseen" role="status">
        {announcement.value}
      </p>
      <Notices />
    </>
  );
}

/** The keys that work now. People can turn single keys off, as some need to. */
function Keys() {
  const { isBare, canWrite, selection } = garden;
  const hasPlants = !isBare.value;
  return (
    <p id="keys">
      <label class="check">
        <input
          id="use-shortcuts"
          type="checkbox"
          checked={areShortcutsOn.value}
          onChange={(event) => {
            areShortcutsOn.value = event.currentTarget.checked;
          }}
        />{" "}
        Shortcuts
      </label>
      {areShortcutsOn.value &&
        listShortcuts().map(([key, label]) => (
          <span key={key}>
            <kbd>{key}</kbd> {label}
          </span>
        ))}
      {hasPlants && (
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> between plants
        </span>
      )}
      {hasPlants && canWrite.value && !selection.isOn.value && (
        <span>
          <kbd>Del</kbd> delete
        </span>
      )}
      <span>
        <kbd>Esc</kbd> close
      </span>
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
      isOpen={asked !== undefined}
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
  const { undo } = garden;
  const { isSignedIn } = session;
  const step = undo.next.value;
  return (
    <div id="notices" class="notices" role="region" aria-label="Messages">
      {!session.isConnected.value && isSignedIn.value && (
        <p id="offline" class="notice trouble" role="status">
          Not connected, trying again…
        </p>
      )}
      {step && (
        <div id="undo" class="notice" role="group" aria-label="Last change">
          <p id="undo-text">
            <Words text={step.text} />
          </p>
          <Button
            id="undo-button"
            isBusy={undo.isBusy.value}
            onClick={() => void undo.undo()}
            label="Undo"
            shortcut="z"
          />
          <Button id="undo-close" onClick={() => undo.dismiss()} label="Dismiss" />
        </div>
      )}
      {notice.value && (
        <div id="notice" class={`notice ${notice.value.kind === "trouble" ? "trouble" : ""}`}>
          <p id="notice-text">
            <Words text={notice.value.text} />
          </p>
          <Button id="notice-close" onClick={hideNotice} label="Dismiss" />
        </div>
      )}
    </div>
  );
}

render(<Page />, document.body);
start();
