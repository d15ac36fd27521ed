/** The OpenAPI 3.1 document, built from the operations and schemas that the service runs on. */
import { toJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { type ErrorCode, errorCodes } from "../domain/errors.ts";
import { plantDraftSchema, plantItemSchema, plantViewSchema } from "../domain/plant.ts";
import type { HeaderDescription, Operation, SchemaName } from "./operation.ts";
import { operations } from "./operations.ts";
import type { Parameter } from "./parameters.ts";
import { problemType } from "./problem.ts";

type Json = Readonly<Record<string, unknown>>;

/** Problems that any operation can have besides its own. */
const commonProblems: readonly ErrorCode[] = ["invalid-request", "internal"];
const tokenProblems: readonly ErrorCode[] = ["unauthenticated", "rate-limited", "unavailable"];
/** Every token may read. */
const writeProblems: readonly ErrorCode[] = [...tokenProblems, "forbidden"];

export function createOpenApi(info: { version: string; basePath: string }): Json {
  return {
    openapi: "3.1.0",
    info: {
      title: "Plant Store",
      version: info.version,
      summary: "A store of plants behind an HTTP API.",
      description,
      license: { name: "MIT", identifier: "MIT" },
    },
    externalDocs: { description: "This document as a page.", url: `${info.basePath}/docs` },
    servers: [
      { url: info.basePath === "" ? "/" : info.basePath, description: "The service itself." },
    ],
    security: [{ token: [] }],
    tags: [
      { name: "plants", description: "The plants of the caller's garden." },
      { name: "service", description: "The service itself. No token is needed." },
    ],
    paths: describePaths(),
    components: {
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description: "A token made by `plantstore token create`, or a JWT of the trusted issuer.",
        },
      },
      headers: {
        "X-Request-Id": describeHeader(requestIdHeader),
        ...mapValues(limitHeaders, describeHeader),
      },
      parameters: { "X-Request-Id": requestIdParameter },
      responses: describeProblemResponses(),
      schemas: {
        ...plantSchemas,
        Problem: {
          ...problemSchema,
          externalDocs: {
            description: "What each problem type means and what to do about it.",
            url: `${info.basePath}/docs#description/errors`,
          },
        },
      },
    },
  };
}

const codes = Object.keys(errorCodes) as ErrorCode[];

/** The API reference shows it first, with a link to each heading. */
const description = `Create, list and delete plants. Each token opens one garden, and a caller sees only the plants of that garden.

## Ids

An id is any signed 64-bit integer. Many clients read a JSON number as a double, which is exact up to 2^53 − 1; every id that the service assigns is below that. A client that chooses larger ids must read and write them as 64-bit integers.

## Errors

Every error is a problem (RFC 9457). Its \`type\` is \`urn:plantstore:problem:\` and one of these codes:

${codes.map((code) => `- \`${code}\` (${errorCodes[code].status}): ${errorCodes[code].help}`).join("\n")}
`;

const requestIdHeader: HeaderDescription = {
  description:
    "The id of the request: the one that the client sent, unless it is malformed or contains a token.",
  example: "c6a2f1d09b3e-1",
  required: true,
};

/** From the IETF draft on RateLimit fields; absent where nothing is limited. */
const limitHeaders = {
  RateLimit: {
    description:
      "With a rate limit: how many requests the token has left (`r`), and the seconds until it " +
      "gets one more (`t`). For a full garden: that no plants are left.",
    example: '"requests";r=42;t=1',
  },
  "RateLimit-Policy": {
    description:
      "The limits that are set: how many requests a token may make (`q`) in a window of seconds " +
      "(`w`), and how many plants a garden may hold.",
    example: '"requests";q=100;w=60, "plants";q=1000;qu="plants"',
  },
} satisfies Record<string, HeaderDescription>;

const limitHeaderReferences = mapValues(limitHeaders, (_, name) => ({
  $ref: `#/components/headers/${name}`,
}));

const requestIdParameter = {
  name: "X-Request-Id",
  in: "header",
  description: "Your id for this request. One that is malformed or contains a token is replaced.",
  schema: { type: "string", pattern: "^[A-Za-z0-9._-]{1,128}$" },
};

function describePaths(): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const operation of operations) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method.toLowerCase()]: describeOperation(operation),
    };
  }
  return paths;
}

function describeOperation(operation: Operation): Json {
  const { name, summary, description, scope, parameters, body } = operation;
  const described = Object.entries(parameters).map(([key, each]) => describeParameter(key, each));
  return {
    operationId: name,
    tags: [scope ? "plants" : "service"],
    summary,
    description,
    ...(!scope && { security: [] }),
    parameters: [...described, { $ref: "#/components/parameters/X-Request-Id" }],
    ...(body && {
      requestBody: {
        required: true,
        content: {
          "application/json": { schema: schemaReference(body.schemaName), examples: body.examples },
        },
      },
    }),
    responses: describeResponses(operation),
  };
}

function describeParameter(name: string, parameter: Parameter): Json {
  return {
    name,
    in: parameter.in,
    description: parameter.description,
    required: parameter.in === "path",
    schema: v.getMetadata(parameter.schema).jsonSchema,
    example: parameter.example,
  };
}

function describeResponses(operation: Operation): Json {
  const { success, scope } = operation;
  const responses: Record<string, Json> = {
    [success.status]: {
      description: success.description,
      headers: {
        "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" },
        ...(scope && limitHeaderReferences),
        ...mapValues(success.headers ?? {}, describeHeader),
      },
      ...(success.contentType && {
        content: {
          [success.contentType]: {
            schema: success.schema && schemaReference(success.schema),
            ...(success.examples && { examples: success.examples }),
          },
        },
      }),
    },
  };
  for (const code of problemCodes(operation)) {
    responses[errorCodes[code].status] = { $ref: `#/components/responses/${code}` };
  }
  return responses;
}

function problemCodes({ problems: own, scope }: Operation): readonly ErrorCode[] {
  const scoped = scope === "write" ? writeProblems : tokenProblems;
  return [...commonProblems, ...own, ...(scope ? scoped : [])];
}

const retryAfterHeader: HeaderDescription = {
  description: "Seconds to wait before the next attempt.",
  example: 1,
  required: true,
};

const problemHeaderDescriptions: Partial<Record<ErrorCode, Record<string, HeaderDescription>>> = {
  unauthenticated: {
    "WWW-Authenticate": {
      description: "The challenge (RFC 6750), with `invalid_token` if a token was sent.",
      example: 'Bearer realm="plants", error="invalid_token"',
      required: true,
    },
  },
  forbidden: {
    "WWW-Authenticate": {
      description: "The challenge (RFC 6750), with the scope that the operation needs.",
      example: 'Bearer realm="plants", error="insufficient_scope", scope="write"',
      required: true,
    },
  },
  "rate-limited": { "Retry-After": retryAfterHeader },
  unavailable: { "Retry-After": retryAfterHeader },
};

function describeProblemResponses(): Json {
  const usedCodes = new Set(operations.flatMap(problemCodes));
  const used = Object.entries(errorCodes).filter(([code]) => usedCodes.has(code as ErrorCode));
  const usedProblems = Object.fromEntries(used) as typeof errorCodes;
  return mapValues(usedProblems, ({ status, title, help }, code) => ({
    description: `${title}.`,
    headers: {
      "X-Request-Id": { $ref: "#/components/headers/X-Request-Id" },
      ...(code !== "unauthenticated" && limitHeaderReferences),
      ...mapValues(problemHeaderDescriptions[code] ?? {}, describeHeader),
    },
    content: {
      "application/problem+json": {
        schema: { $ref: "#/components/schemas/Problem" },
        example: {
          type: problemType(code),
          title,
          status,
          detail: help,
          requestId: requestIdHeader.example,
          ...(status === 400 && { errors: [{ pointer: "/name", detail: "is required." }] }),
        },
      },
    },
  }));
}

function describeHeader({ description, example, required }: HeaderDescription): Json {
  const type = typeof example === "number" ? "integer" : "string";
  return { description, required: required ?? false, schema: { type }, example };
}

function schemaReference(name: SchemaName): Json {
  return { $ref: `#/components/schemas/${name}` };
}

const plantSchemas: Readonly<Record<SchemaName, Json>> = {
  PlantDraft: describeSchema(plantDraftSchema),
  Plant: describeSchema(plantViewSchema),
  PlantList: { type: "array", items: describeSchema(plantItemSchema) },
  Text: { type: "string" },
  Document: { type: "object" },
};

const problemSchema = {
  type: "object",
  required: ["type", "title", "status", "detail", "requestId"],
  properties: {
    type: { type: "string", enum: codes.map(problemType) },
    title: { type: "string" },
    status: { type: "integer", enum: Object.values(errorCodes).map(({ status }) => status) },
    detail: { type: "string", description: "What to fix. Safe to show." },
    requestId: { type: "string" },
    errors: {
      type: "array",
      description: "With status 400: every validation error, and where it is.",
      items: {
        type: "object",
        required: ["detail"],
        properties: {
          pointer: { type: "string", description: "A JSON Pointer into the body." },
          parameter: { type: "string", description: "The name of a path or query parameter." },
          header: { type: "string", description: "The name of a header." },
          detail: { type: "string" },
        },
        additionalProperties: false,
      },
    },
  },
  additionalProperties: false,
};

/** The schema's checks are functions, so their limits come from its metadata. */
function describeSchema(schema: v.GenericSchema): Json {
  const { $schema: _, ...described } = toJsonSchema(schema, {
    errorMode: "ignore",
    typeMode: "input",
    ignoreActions: ["check", "min_value", "max_value"],
    overrideSchema: ({ valibotSchema, jsonSchema }) => {
      if (valibotSchema.type === "bigint") return { type: "integer", format: "int64" };
      // openapi-typescript makes a property with a default required.
      const { default: _, ...withoutDefault } = jsonSchema;
      return withoutDefault;
    },
    overrideAction: ({ valibotAction, jsonSchema }) =>
      valibotAction.type === "metadata"
        ? { ...jsonSchema, ...(valibotAction as { metadata?: object }).metadata }
        : jsonSchema,
  });
  // The service refuses unknown fields.
  return { ...described, additionalProperties: false };
}

function mapValues<Key extends string, Value, Mapped>(
  record: Readonly<Record<Key, Value>>,
  map: (value: Value, key: Key) => Mapped,
): Record<Key, Mapped> {
  const entries = Object.entries(record) as [Key, Value][];
  return Object.fromEntries(entries.map(([key, value]) => [key, map(value, key)])) as Record<
    Key,
    Mapped
  >;
}
