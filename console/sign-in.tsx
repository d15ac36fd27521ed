/** The form that asks for a token. */
import { useSignal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { Button, Checkbox, focus, onText } from "./parts.tsx";
import { session } from "./state.ts";

export function SignIn() {
  const token = useSignal("");
  const isKept = useSignal(false);
  const error = session.error.value;
  const isHidden = session.isSignedIn.value;
  const submit = (event: Event) => {
    event.preventDefault();
    // A password manager may have filled it in without saying so.
    const { value } = document.getElementById("token") as HTMLInputElement;
    void session.signIn(value, isKept.value);
  };
  useLayoutEffect(() => {
    if (isHidden) token.value = "";
    else focus("token");
  }, [isHidden, error]);
  return (
    <section id="sign-in" class="card sign-in" aria-labelledby="sign-in-title" hidden={isHidden}>
      <div class="plate" aria-hidden="true">
        <Leaf />
      </div>
      <form noValidate onSubmit={submit}>
        <h1 id="sign-in-title">Open your garden</h1>
        {session.reason.value && (
          <p id="sign-in-reason" class="banner" role="alert">
            {session.reason.value}
          </p>
        )}
        <p>Plants live in gardens; a token opens one garden.</p>
        {/* For password managers, which keep a token for each garden. It's filled in before the form goes. */}
        <label class="unseen" for="account" aria-hidden="true">
          User and garden
        </label>
        <input
          id="account"
          class="unseen"
          type="text"
          autocomplete="username"
          tabIndex={-1}
          aria-hidden="true"
          value={session.account}
        />
        <div class="field">
          <label for="token">Token</label>
          <input
            id="token"
            type="password"
            autocomplete="current-password"
            autocapitalize="off"
            spellcheck={false}
            value={token.value}
            onInput={onText((text) => {
              token.value = text;
              session.error.value = "";
            })}
            aria-describedby="token-error token-hint"
            aria-invalid={error !== ""}
          />
          <p id="token-error" class="error" role="alert">
            {error}
          </p>
          <p id="token-hint" class="hint">
            It starts with <code>plant_</code>. The service prints one when it first starts;{" "}
            <code>plantstore token create</code> makes more.
          </p>
        </div>
        <Checkbox id="keep-token" isChecked={isKept} label="Stay signed in when this tab reloads" />
        <Button id="sign-in-button" class="primary" type="submit" task={session.signingIn}>
          Open the garden
        </Button>
        <p class="hint">
          Unless you stay signed in, the token is kept only in the memory of this page and of an API
          reference opened from it. It is sent only to this service, and signing out forgets it.
        </p>
      </form>
    </section>
  );
}

/** The sign of Plant Store. */
export function Leaf() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <path class="leaf" d="M27 4C12 4 5 11 5 20c0 2 .4 4 1 6l2-5c5 1 10-1 13-5 3-3 5-7 6-12z" />
      <path class="vein" d="M5 29C7 20 13 14 20 11" />
    </svg>
  );
}
