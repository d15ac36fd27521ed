/** Starts the API reference on this service's own document; it asks no other host for anything. */

declare const Scalar: {
  createApiReference(place: string, settings: Readonly<Record<string, unknown>>): void;
};

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
