/**
 * Finds and makes elements. Text goes in as text only, so nothing that a plant is called is ever
 * HTML.
 */

/** The element of the page with this id; that it is there and of this kind is part of the page. */
export function find<Kind extends Element = HTMLElement>(id: string): Kind {
  const element = document.getElementById(id);
  if (!element) throw new Error(`The page has no #${id}.`);
  return element as unknown as Kind;
}

type Attributes = Readonly<Record<string, string | number | boolean>>;

export function make<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  return fill(document.createElement(tag), attributes, children);
}

export function makeSvg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): SVGElementTagNameMap[Tag] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill<Kind extends Element>(
  element: Kind,
  attributes: Attributes,
  children: readonly (Node | string)[],
): Kind {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "boolean") element.toggleAttribute(name, value);
    else element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/**
 * A message with names in it. Each name is isolated, so that one written right to left doesn't
 * reorder the words around it.
 */
export function message(texts: TemplateStringsArray, ...names: string[]): DocumentFragment {
  const fragment = document.createDocumentFragment();
  for (const [index, text] of texts.entries()) {
    if (index > 0) fragment.append(make("bdi", {}, names[index - 1] ?? ""));
    fragment.append(text);
  }
  return fragment;
}

export function show(element: HTMLElement, isShown: boolean): void {
  element.hidden = !isShown;
}

const numbers = new Intl.NumberFormat("en");

/** `1 plant`, `1,204 plants`. */
export function count(amount: number, noun: string): string {
  return `${numbers.format(amount)} ${noun}${amount === 1 ? "" : "s"}`;
}
