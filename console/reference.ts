/** Starts the API reference, Swagger UI, with this service's own document. It contacts no other host. */
import { followToken } from "./shared-token.ts";

declare const SwaggerUIBundle: (settings: Readonly<Record<string, unknown>>) => Renderer;

interface Renderer {
  preauthorizeApiKey(scheme: string, token: string): void;
  readonly authActions: { logout(schemes: readonly string[]): void };
}

/** What the renderer gives to a plugin. */
interface System {
  readonly React: {
    createElement(type: unknown, props: object | null, ...children: unknown[]): unknown;
    useEffect(run: () => void, dependencies: readonly unknown[]): void;
    useRef<T>(value: T): { current: T };
  };
}

interface Props {
  readonly text: unknown;
  /** The last response to what was sent. */
  readonly tryItOutResponse?: { get(field: "status" | "headers"): unknown } | null;
}

type Component = (props: Props) => unknown;

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

interface Operation {
  readonly parameters: {
    readonly required: boolean;
    readonly schema: { readonly enum?: unknown };
    description: string;
    example?: unknown;
  }[];
}

/** Loads while the renderer's script does, which comes after this one. */
const loading: Promise<OpenApi> = fetch("openapi.json").then((response) => response.json());

document.addEventListener("DOMContentLoaded", async () => {
  const renderer = SwaggerUIBundle({
    dom_id: "#reference",
    spec: emptyOptions(await loading),
    deepLinking: true,
    tryItOutEnabled: true,
    defaultModelsExpandDepth: 0,
    // It would send the document to another host.
    validatorUrl: null,
    // A long list would take seconds to color.
    syntaxHighlight: { activated: false },
    plugins: [{ wrapComponents: { DeepLink: asText, responses: showResponse } }],
  });
  followToken((token) => {
    if (token) renderer.preauthorizeApiKey("token", token);
    else renderer.authActions.logout(["token"]);
  });
});

/** The renderer fills examples in, and sends them: a list would have every filter set. */
function emptyOptions(document: OpenApi): OpenApi {
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  for (const parameter of operations.flatMap(({ parameters }) => parameters)) {
    if (parameter.required) continue;
    if (!parameter.schema.enum) parameter.description += ` For example: \`${parameter.example}\`.`;
    delete parameter.example;
  }
  return document;
}

/** A link inside a button can't be used by keys. The address says what is open without it. */
function asText(_link: Component, { React }: System): Component {
  return ({ text }) => React.createElement("span", null, text);
}

/** A response begins below what is on a phone's screen, and isn't announced. */
function showResponse(responses: Component, { React }: System): Component {
  return (props) => {
    const response = props.tryItOutResponse;
    const headers = response?.get("headers");
    const place = React.useRef<HTMLElement | null>(null);
    // Not again when the operation is closed and opened.
    const shown = React.useRef(headers);
    React.useEffect(() => {
      if (headers && headers !== shown.current) {
        place.current?.querySelector(".live-responses-table")?.scrollIntoView({ block: "nearest" });
      }
      shown.current = headers;
    }, [headers]);
    const status = response ? `Response: ${response.get("status") ?? "none"}` : "";
    return React.createElement(
      "div",
      { ref: place },
      React.createElement("p", { role: "status", className: "unseen" }, status),
      React.createElement(responses, props),
    );
  };
}

/** What the renderer leaves out or gets wrong for screen readers: names and roles. */
const attributes = [
  [".information-container", "role", "region"],
  [".information-container", "aria-label", "About the API"],
  [".scheme-container", "role", "region"],
  [".scheme-container", "aria-label", "Server and token"],
  ["#servers", "aria-label", "Server"],
  ["textarea.body-param__text", "aria-label", "Request body"],
  ["table[role=region]", "role", undefined],
  // They scroll.
  [".responses-inner pre:not(.example)", "tabindex", "0"],
  ["div.copy-to-clipboard", "aria-label", undefined],
  [".modal-ux", "role", "dialog"],
  [".modal-ux", "aria-modal", "true"],
  [".modal-ux", "aria-label", "Token"],
  [".close-modal", "aria-label", "Close"],
  [".modal-btn", "aria-label", undefined],
  ["#auth-bearer-value", "aria-label", "Token"],
  ["#auth-bearer-value", "type", "password"],
  ["#auth-bearer-value", "autocomplete", "off"],
] as const;

new MutationObserver(() => {
  for (const [selector, name, value] of attributes) {
    for (const element of document.querySelectorAll(selector)) {
      if (value === undefined) element.removeAttribute(name);
      else element.setAttribute(name, value);
    }
  }
  for (const row of document.querySelectorAll<HTMLElement>("[data-param-name]")) {
    row.querySelector("input, select")?.setAttribute("aria-label", row.dataset.paramName ?? "");
  }
}).observe(document, { childList: true, subtree: true });

// The renderer shows a response as it was parsed, which rounds ids beyond 2^53.
const { parse } = JSON;
/** Absent in browsers of 2024 and before. */
const { rawJSON } = JSON as { rawJSON?: (digits: string) => unknown };

function keepDigits(_key: string, value: unknown, { source = "" }: { source?: string } = {}) {
  const isRounded = /^-?\d+$/.test(source) && String(value) !== source;
  return isRounded ? rawJSON?.(source) : value;
}

if (rawJSON) JSON.parse = (text, reviver = keepDigits) => parse(text, reviver);
