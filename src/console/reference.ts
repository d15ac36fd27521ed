/** Starts the API reference on this service's own document; it asks no other host for anything. */

declare const Scalar: {
  createApiReference(place: string, settings: Readonly<Record<string, unknown>>): void;
};

// The renderer tries whether it may make code out of text. The policy forbids that; answered here,
// the attempt is no breach of it that browsers would report.
globalThis.Function = new Proxy(Function, {
  construct() {
    throw new EvalError("The policy of this page permits no code from text.");
  },
});

// By then the renderer, whose script comes after this one, has been loaded.
document.addEventListener("DOMContentLoaded", () => {
  Scalar.createApiReference("#reference", {
    url: new URL("openapi.json", document.baseURI).pathname,
    // Requests go straight to this service, and a token that was typed in is gone with the page.
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
