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

/** Controls of the renderer that have no name of their own. */
const names = {
  "button.client-libraries__select": "More languages",
  "button[class*=copy-button]": "Copy",
  "input[type=checkbox]": "Send this field",
  "[role=textbox]": "Text to send",
};

new MutationObserver(() => {
  for (const [selector, name] of Object.entries(names)) {
    for (const control of document.querySelectorAll(`${selector}:not([aria-label])`)) {
      control.setAttribute("aria-label", name);
    }
  }
  for (const button of document.querySelectorAll("button[role=none]"))
    button.removeAttribute("role");
}).observe(document, { childList: true, subtree: true });
