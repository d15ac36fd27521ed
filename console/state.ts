/** The state of the page, part by part, and how the parts hear from each other. */
import { effect, signal, untracked } from "@preact/signals";
import { Activity } from "./activity.ts";
import { Address } from "./address.ts";
import { Bulk } from "./bulk.ts";
import { Card } from "./card.ts";
import { Feed } from "./feed.ts";
import { Garden } from "./garden.ts";
import { Session } from "./session.ts";
import { Transfers } from "./transfers.ts";

export const session = new Session({ url: new URL(".", document.baseURI).href }, tabStorage());
const { api } = session;
export const address = new Address();
export const garden = new Garden(api);
export const bulk = new Bulk(api, garden);
export const card = new Card(api, garden, (plant) => address.go({ plant }));
export const activity = new Activity(api);
export const isAdding = signal(false);
export const transfers = new Transfers(api, {
  query: () => garden.list.value.query,
  onChanged: () => void garden.refresh(),
  chooseFile,
  download,
});
export { api };

const feed = new Feed(api, {
  onEvents(events) {
    activity.add(events, garden.list.value.plants);
    card.follow(events);
    garden.follow(events);
  },
  isBusy: () => api.isWriting || garden.isLoading.value,
  onMissed() {
    activity.close();
    void garden.refresh();
  },
});

/** Shows what the address says, and follows the garden. */
export function start(): void {
  garden.onOpened = (lastEvent) => feed.start(lastEvent);
  const follow = () => feed.setHidden(document.hidden);
  document.addEventListener("visibilitychange", follow);
  follow();
  effect(() => {
    const { plant, ...query } = address.place.value;
    untracked(() => {
      if (plant === undefined) card.close();
      else void card.open(plant);
      garden.show(query);
    });
  });
  effect(() => {
    // Another token may have other rights, and what was missed is counted.
    const isBack = session.isSignedIn.value && garden.summary.peek() !== undefined;
    if (isBack) void garden.recount();
  });
  effect(() => {
    if (!session.isConnected.value) garden.recountSoon();
  });
}

/** Loading the page again forgets everything. */
export function signOut(): void {
  session.signOut();
  history.replaceState(null, "", location.pathname + location.search);
  location.reload();
}

export function chooseFile(): void {
  document.getElementById("import-file")?.click();
}

function download(file: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // The browser may not have read it yet.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Browsers that let sites store nothing throw when asked for it. */
function tabStorage(): Storage | undefined {
  try {
    return sessionStorage;
  } catch {
    return undefined;
  }
}
