/** Starts the API reference with this service's own document. It contacts no other host. */

declare const Scalar: {
  createApiReference(place: string, settings: Readonly<Record<string, unknown>>): void;
};

// The renderer tries whether it may use eval, which the page's policy forbids. Refusing it here
// keeps browsers from reporting a violation.
globalThis.Function = new Proxy(Function, {
  construct() {
    throw new EvalError("This page's policy forbids eval.");
  },
});

// The renderer's script comes after this one, and is loaded by then.
document.addEventListener("DOMContentLoaded", () => {
  Scalar.createApiReference("#reference", {
    url: new URL("openapi.json", document.baseURI).pathname,
    // Send requests straight to this service, and don't keep a pasted token.
    proxyUrl: "",
    persistAuth: false,
    withDefaultFonts: false,
    telemetry: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    hideClientButton: true,
    showDeveloperTools: "never",
    theme: "none",
    metaData: { title: "Plant Store: API reference" },
    defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  });
});

/** What the renderer leaves out or gets wrong for screen readers: names, roles and states. */
const attributes = [
  ["button.client-libraries__select:not([aria-label])", "aria-label", "More languages"],
  ["button.client-libraries__select", "role", "tab"],
  ["button:is([class*=copy-button], .code-copy):not([aria-label])", "aria-label", "Copy"],
  ["button[class*=copy-button][aria-controls]", "aria-controls", undefined],
  ["input[type=checkbox]:not([aria-label])", "aria-label", "Send this field"],
  ["[role=textbox]:not([aria-label])", "aria-label", "Text to send"],
  ["button:is([role=none], [role=search]), aside, .scalar-card", "role", undefined],
  ["section.contents", "role", "group"],
  ["section[aria-label^=Notifications]", "role", "status"],
  ["button[aria-selected]:not([role=tab])", "aria-selected", undefined],
] as const;

new MutationObserver(() => {
  for (const [selector, name, value] of attributes) {
    for (const element of document.querySelectorAll(selector)) {
      if (value === undefined) element.removeAttribute(name);
      else element.setAttribute(name, value);
    }
  }
}).observe(document, { childList: true, subtree: true });
