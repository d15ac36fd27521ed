/** OpenAPI: the document that describes the service, and the pages beside it. */
import type { Answer } from "../answer.ts";
import { expectHeader, expectStatus, expectThat } from "../expectation.ts";
import type { Probe } from "../probe.ts";
import { rulesOf } from "../rule.ts";

interface FoundDocument {
  readonly openapi?: string;
  readonly info?: { readonly title?: string; readonly version?: string };
  readonly servers?: readonly { readonly url?: string }[];
  readonly paths?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components?: {
    readonly securitySchemes?: Readonly<Record<string, { type?: string; scheme?: string }>>;
  };
}

async function readDocument(probe: Probe): Promise<{ document: FoundDocument; answer: Answer }> {
  const answer = await probe.askOpenly("GET /openapi.json");
  return { document: (answer.json ?? {}) as FoundDocument, answer };
}

async function expectPage(probe: Probe, path: string): Promise<void> {
  const answer = await probe.askOpenly(`GET ${path}`);
  expectStatus(answer, 200);
  expectHeader(answer, "Content-Type", /^text\/html\b/);
  expectHeader(answer, "Content-Security-Policy", /default-src/);
}

export const openapiRules = rulesOf("openapi", {
  "/openapi.json is JSON, without a token": async (probe) => {
    const { answer } = await readDocument(probe);
    expectStatus(answer, 200);
    expectHeader(answer, "Content-Type", /^application\/json\b/);
    expectThat(answer.json !== undefined, "it is not JSON", answer);
  },
  "it is OpenAPI 3.1": async (probe) => {
    const { document, answer } = await readDocument(probe);
    expectThat(/^3\.1\./.test(document.openapi ?? ""), `openapi is ${document.openapi}`, answer);
  },
  "it has the version of the package": async (probe) => {
    const { document, answer } = await readDocument(probe);
    const version = document.info?.version ?? "absent";
    expectThat(/^\d+\.\d+\.\d+/.test(version), `info.version is ${version}`, answer);
  },
  "it describes the three operations": async (probe) => {
    const { document, answer } = await readDocument(probe);
    const operations = [
      ["/plants", "get"],
      ["/plants", "post"],
      ["/plants/{id}", "delete"],
    ] as const;
    for (const [path, method] of operations) {
      const isThere = document.paths?.[path]?.[method] !== undefined;
      expectThat(isThere, `paths has no ${method} of ${path}`, answer);
    }
  },
  "it says that a bearer token is needed": async (probe) => {
    const { document, answer } = await readDocument(probe);
    const schemes = Object.values(document.components?.securitySchemes ?? {});
    const isThere = schemes.some(({ type, scheme }) => type === "http" && scheme === "bearer");
    expectThat(isThere, "securitySchemes has no bearer scheme", answer);
  },
  "its server is the base path": async (probe) => {
    const { document, answer } = await readDocument(probe);
    const { basePath, authority } = probe.line;
    const paths = (document.servers ?? [{ url: "/" }]).map(({ url = "/" }) =>
      new URL(url, `http://${authority}`).pathname.replace(/\/$/, ""),
    );
    expectThat(paths.includes(basePath), `servers are at ${paths.join(", ")}`, answer);
  },
  "/docs is a page, without a token": (probe) => expectPage(probe, "/docs"),
  "/ is a page, without a token": (probe) => expectPage(probe, "/"),
});
