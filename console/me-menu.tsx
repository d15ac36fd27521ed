/** Whose garden it is and what the token may do, behind the user's name. */

import { notify, warn } from "./message.ts";
import { Button } from "./parts.tsx";
import { garden, session, signOut } from "./state.ts";
import { describeAccess, describeExpiry } from "./words.ts";

export function MeMenu() {
  const me = garden.summary.value?.me;
  const canLeave = session.isSignedIn.value || session.reason.value !== "";
  if (!canLeave) return null;
  return (
    <div class="who">
      {me?.lastEvent !== undefined && <Live />}
      <button id="open-me" type="button" popovertarget="me">
        <bdi>{me?.user ?? "…"}</bdi>
        <span aria-hidden="true">▾</span>
      </button>
      <div id="me" class="card menu" popover="auto" role="group" aria-label="Your token">
        {me && (
          <dl class="facts">
            <Fact name="User" value={me.user} />
            <Fact name="Garden" value={me.garden} />
            <Fact name="Token" value={`${describeAccess(me)}, ${describeExpiry(me)}`} />
          </dl>
        )}
        {me && garden.canWrite.value && <Invitation garden={me.garden} />}
        <Button id="sign-out" onClick={signOut} label="Sign out" />
      </div>
    </div>
  );
}

/** Whether what others do appears here. */
function Live() {
  const isConnected = session.isConnected.value;
  const state = isConnected ? "Live" : "Not connected, trying again";
  return (
    <span
      id="live"
      class={`live ${isConnected ? "" : "away"}`}
      role="img"
      aria-label={state}
      title={state}
    />
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <bdi>{value}</bdi>
      </dd>
    </div>
  );
}

/** The page can't make tokens. An operator can, with a command. */
function Invitation({ garden: name }: { garden: string }) {
  return (
    <div class="field">
      <p>To invite a colleague, make a token where the service runs:</p>
      <code id="invitation" class="sample">
        <span>plantstore token create NAME</span> <span>--garden {quote(name)}</span>
      </code>
      {/* Absent without HTTPS, except on the own machine. */}
      {"clipboard" in navigator && <Button id="copy-invitation" onClick={copy} label="Copy" />}
    </div>
  );
}

async function copy(): Promise<void> {
  const command = document.getElementById("invitation")?.textContent ?? "";
  try {
    await navigator.clipboard.writeText(command);
    notify("The command was copied.");
  } catch (error) {
    // The browser may not allow it.
    warn("The command couldn’t be copied.", error);
  }
}

/** As a shell reads it. */
function quote(text: string): string {
  return /^[\w.@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
