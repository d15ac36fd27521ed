/** The state of the page, part by part, and how the parts hear from each other. */
import { effect, untracked } from "@preact/signals";
import { Activity } from "./activity.ts";
import { followAddress, place } from "./address.ts";
import { toRefusal } from "./api.ts";
import { Editor } from "./editor.ts";
import { Exports } from "./exports.ts";
import { Feed } from "./feed.ts";
import { Garden } from "./garden.ts";
import { Imports } from "./imports.ts";
import { forgetUndo } from "./message.ts";
import { Selection } from "./selection.ts";
import { Session } from "./session.ts";
import { shareToken, tabStorage } from "./shared-token.ts";

export const session = new Session({ url: new URL(".", document.baseURI).href }, tabStorage());
export const { api } = session;
export const garden = new Garden(api);
export const selection = new Selection(garden);
export const editor = new Editor(garden);
export const activity = new Activity(api);
export const imports = new Imports(garden);
export const exports = new Exports(garden);

/** Shows what the address says, and follows the garden. */
export function start(): void {
  const feed = new Feed(api, {
    onEvents(events) {
      activity.add(events, (id) => garden.findBefore(id));
      editor.follow(events);
      garden.follow(events);
    },
    isBusy: () => api.isWriting || garden.isLoading,
    onMissed() {
      // After a restored backup, other plants may have the ids.
      forgetUndo();
      void activity.reload();
      void garden.refresh();
    },
  });
  garden.onOpened = (lastEvent) => feed.start(lastEvent);
  shareToken(() => session.token);
  const follow = () => feed.setHidden(document.hidden);
  document.addEventListener("visibilitychange", follow);
  addEventListener("beforeunload", (event) => {
    if (imports.isSending.value) event.preventDefault();
  });
  follow();
  followAddress();
  effect(() => {
    const { plant, ...query } = place.value;
    untracked(() => {
      void editor.open(plant);
      garden.show(query);
    });
  });
  effect(() => {
    // Another token may have other rights, and what was missed is counted.
    if (session.isSignedIn.value && garden.summary.peek()) garden.recount();
  });
  effect(() => {
    if (!session.isConnected.value) return garden.recount(false);
    // What the service has refused, it would refuse again.
    const error = garden.list.peek().error.peek();
    if (error !== undefined && !toRefusal(error)) untracked(() => garden.retry());
  });
}

/** Loading the page again forgets everything. */
export function signOut(): void {
  session.signOut();
  history.replaceState(null, "", location.pathname + location.search);
  location.reload();
}
