/** Finds, creates and shows elements. Text is only ever inserted as text, never as HTML. */

/** The element with this id. `console.html` has it, and decides what kind it is. */
export function find<Kind extends Element = HTMLElement>(id: string): Kind {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no #${id}.`);
  return element as unknown as Kind;
}

/** Messages cut names to this many characters. */
const nameMax = 50;

export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Replaces the children of an element. The ones that stay aren't touched and keep the focus. */
export function setChildren(box: Element, children: readonly Element[]): void {
  const kept = new Set(children);
  for (const child of [...box.children]) if (!kept.has(child)) child.remove();
  let next = box.firstElementChild;
  for (const child of children) {
    if (child === next) next = next.nextElementSibling;
    else box.insertBefore(child, next);
  }
}

export function show(element: HTMLElement, isShown: boolean): void {
  element.hidden = !isShown;
}

/** Disables a button while its work runs. If that takes long, the button shows a spinner. */
export async function whileBusy(button: HTMLButtonElement, work: () => Promise<void>) {
  if (button.disabled) return;
  button.disabled = true;
  button.ariaBusy = "true";
  try {
    await work();
  } finally {
    button.disabled = false;
    button.ariaBusy = null;
  }
}

/**
 * A message with names in it. Each name is isolated, so a right-to-left name doesn't reorder the
 * words around it. Names in quotes are cut if they are long.
 */
export function message(
  texts: TemplateStringsArray,
  ...names: readonly (string | Node)[]
): DocumentFragment {
  const fragment = document.createDocumentFragment();
  for (const [index, text] of texts.entries()) {
    fragment.append(text);
    const name = names[index] ?? "";
    if (name instanceof Node) fragment.append(name);
    else if (name) fragment.append(make("bdi", {}, text.endsWith("“") ? cut(name) : name));
  }
  return fragment;
}

function cut(name: string): string {
  const characters = [...name];
  return characters.length <= nameMax ? name : `${characters.slice(0, nameMax - 1).join("")}…`;
}

/** Tells screen readers what others can see elsewhere. */
export function announce(text: string | null): void {
  find("announcer").textContent = text;
}

/** Single-key shortcuts, while nobody types. People can turn them off, as some need to. */
export function listenForShortcuts(actions: Readonly<Record<string, () => void>>): void {
  const areOn = find<HTMLInputElement>("use-shortcuts");
  document.addEventListener("keydown", (event) => {
    const { key, target, altKey, ctrlKey, metaKey } = event;
    const isTyping = target instanceof HTMLInputElement && target.type !== "checkbox";
    const isBehind = document.querySelector("dialog:modal, #garden[hidden]") !== null;
    const action = actions[key];
    if (!action || isTyping || isBehind || !areOn.checked || altKey || ctrlKey || metaKey) return;
    event.preventDefault();
    action();
  });
}

const noticeMs = 7_000;
let noticeTimer: ReturnType<typeof setTimeout> | undefined;

/** A message at the foot of the page. News disappears by itself; trouble stays until dismissed. */
export function notify(text: Node, kind: "news" | "trouble" = "news"): void {
  hideNotice();
  find("notice-text").replaceChildren(text);
  find("notice").classList.toggle("trouble", kind === "trouble");
  show(find("notice"), true);
  announce(find("notice-text").textContent);
  if (kind === "news") noticeTimer = setTimeout(hideNotice, noticeMs);
}

export function hideNotice(): void {
  clearTimeout(noticeTimer);
  show(find("notice"), false);
}

/** Asks before doing something large. Escape and the focused button mean no. */
export async function confirm(question: string, note: string, action: string): Promise<boolean> {
  const dialog = find<HTMLDialogElement>("confirm");
  find("confirm-title").textContent = question;
  find("confirm-note").textContent = note;
  find("confirm-yes").textContent = action;
  dialog.returnValue = "";
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  return dialog.returnValue === "yes";
}
