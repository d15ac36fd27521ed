/** Starts the API reference with this service's own document. It contacts no other host. */

declare const Scalar: {
  createApiReference(place: string, settings: Readonly<Record<string, unknown>>): void;
};

// The renderer tests whether it may turn text into code. The policy forbids it; refusing here first
// keeps browsers from reporting a violation.
globalThis.Function = new Proxy(Function, {
  construct() {
    throw new EvalError("This page's policy forbids turning text into code.");
  },
});

// By then the renderer, whose script comes after this one, is loaded.
document.addEventListener("DOMContentLoaded", () => {
  Scalar.createApiReference("#reference", {
    url: new URL("openapi.json", document.baseURI).pathname,
    // Requests go straight to this service, and a pasted token isn't kept.
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
