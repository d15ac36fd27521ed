/** The OpenAPI 3.1 document, built from the operations and schemas that the service runs on. */
import { toJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { type ErrorCode, errorsMax } from "../domain/errors.ts";
import {
  closed,
  type HeaderDescription,
  integer,
  type Json,
  refer,
  text,
  toName,
} from "./json-schema.ts";
import type { DocumentedOperation, RequestBody, Success } from "./operation.ts";
import {
  describeSchemas,
  operationGroups,
  plantOperations as operations,
} from "./operations/index.ts";
import type { Parameter } from "./parameters.ts";
import { problemInfo, problemType } from "./problem.ts";

export function createOpenApi({ version, basePath }: { version: string; basePath: string }): Json {
  return {
    openapi: "3.1.0",
    info: {
      title: "Plant Store",
      version,
      summary: "A store of plants behind an HTTP API.",
      description,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: basePath === "" ? "/" : basePath, description: "The service itself." }],
    security: [{ token: [] }],
    tags: operationGroups.map(({ name, description }) => ({ name, description })),
    paths: describePaths(),
    components: {
      securitySchemes: {
        token: {
          type: "http",
          scheme: "bearer",
          description: "A token made by `plantstore token create`, or a JWT of the trusted issuer.",
        },
      },
      headers: Object.fromEntries(
        Object.entries(describeHeaders(sharedHeaders)).map(([name, header]) => [
          toName(name),
          header,
        ]),
      ),
      responses: describeProblems(),
      schemas: { ...describeSchemas({ fromValibot }), Problem: problemSchema },
    },
  };
}

const codes = Object.keys(problemInfo) as ErrorCode[];

/** The API reference shows it first, with a link to each heading. */
const description = `Create, list and delete plants. Plants live in gardens; a token opens one garden, and its caller sees only the plants of that garden.

HEAD is possible wherever GET is, and OPTIONS on every path that needs a token.

## Ids

An id is any signed 64-bit integer. Many clients read a JSON number as a double, which is exact up to 2^53 − 1; no id that the service assigns is above that. A client that chooses larger ids must read and write them as 64-bit integers.

## Errors

Every error is a problem (RFC 9457). Its \`type\` is \`urn:plantstore:problem:\` and one of these codes:

${codes.map((code) => `- \`${code}\` (${problemInfo[code].status}): ${problemInfo[code].help}`).join("\n")}
`;

const requestIdExample = "c6a2f1d09b3e-1";

const requestIdPattern = "^[A-Za-z0-9._-]{1,128}$";

const sharedHeaders: Record<string, HeaderDescription> = {
  "X-Request-Id": {
    description:
      "The id of the request. Yours, if you sent a well-formed one that contains no token, not " +
      "even without its `plant_`.",
    example: requestIdExample,
    pattern: requestIdPattern,
    required: true,
  },
  // From the IETF draft on RateLimit fields; absent where nothing is limited.
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
};

const callerHeaders = Object.fromEntries(
  Object.keys(sharedHeaders).map((name) => [name, refer("headers", name)]),
);

function describeHeaders(headers: Readonly<Record<string, HeaderDescription>> = {}): Json {
  const described = Object.entries(headers).map(([name, header]) => {
    const { description, example, pattern, required = false } = header;
    const isNumber = typeof example === "number";
    const schema = isNumber
      ? { type: "integer", format: "int32", minimum: 0 }
      : { type: "string", ...(pattern && { pattern }) };
    return [name, { description, required, schema, example }];
  });
  return Object.fromEntries(described);
}

function describePaths(): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const group of operationGroups) {
    for (const operation of group.operations) {
      paths[operation.path] = {
        ...paths[operation.path],
        [operation.method.toLowerCase()]: describeOperation(operation, group.name),
      };
    }
  }
  return paths;
}

function describeOperation(operation: DocumentedOperation, group: string): Json {
  const { name, summary, description, parameters = {}, body } = operation;
  const described = Object.entries(parameters).map(([key, each]) => describeParameter(key, each));
  return {
    operationId: name,
    tags: [group],
    summary,
    description,
    parameters: described,
    ...(body && { requestBody: { required: true, content: describeBody(body) } }),
    responses: describeResponses(operation),
  };
}

function describeBody({ schema, example, otherType }: RequestBody): Json {
  const described = { schema: refer("schemas", schema), example };
  return { ...(otherType && { [otherType]: described }), "application/json": described };
}

function describeParameter(name: string, parameter: Parameter): Json {
  const { jsonSchema } = v.getMetadata(parameter.schema) as { jsonSchema: Json };
  return {
    name,
    in: parameter.in,
    description: parameter.description,
    required: parameter.in === "path",
    schema: jsonSchema,
    example: parameter.example,
  };
}

function describeResponses(operation: DocumentedOperation): Json {
  const { success, otherSuccess } = operation;
  const responses: Record<string, Json> = {};
  for (const each of otherSuccess ? [success, otherSuccess] : [success]) {
    responses[each.status ?? 200] = describeSuccess(each);
  }
  for (const code of problemCodes(operation)) {
    responses[problemInfo[code].status] = refer("responses", code);
  }
  return responses;
}

function describeSuccess(success: Success): Json {
  const { description, headers, schema, example, streamSchema } = success;
  return {
    description,
    headers: { ...callerHeaders, ...describeHeaders(headers) },
    content: schema && {
      "application/json": { schema: refer("schemas", schema), example },
      ...(streamSchema && {
        "text/event-stream": { schema: refer("schemas", streamSchema), example },
      }),
    },
  };
}

/** What any operation may respond with, then those with a body or a write, then this one. */
function problemCodes(operation: DocumentedOperation): readonly ErrorCode[] {
  const { problems = [], body, scope, method } = operation;
  const ofAll = ["invalid-request", "unauthenticated", "forbidden", "rate-limited"] as const;
  const ofBodies = ["too-large", "unsupported-media-type", "timeout"] as const;
  const ofWrites = ["precondition-failed", "storage-full"] as const;
  return [
    ...ofAll,
    "expectation-failed",
    "internal",
    "unavailable",
    ...(body ? ofBodies : []),
    // An empty body in chunks may come late.
    ...(method === "DELETE" ? (["timeout"] as const) : []),
    ...(scope === "write" ? ofWrites : []),
    ...problems,
  ];
}

const retryAfter: HeaderDescription = {
  description: "Seconds to wait before the next attempt.",
  example: 1,
  required: true,
};

const problemHeaders: Partial<Record<ErrorCode, Record<string, HeaderDescription>>> = {
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
  "unsupported-media-type": {
    Accept: {
      description: "The types that the body may have.",
      example: "application/json",
      required: true,
    },
  },
  "rate-limited": { "Retry-After": retryAfter },
  unavailable: { "Retry-After": retryAfter },
};

/** A response for each problem that some operation can have. */
function describeProblems(): Json {
  const used = new Set(operations.flatMap(problemCodes));
  return Object.fromEntries(Array.from(used, (code) => [toName(code), describeProblem(code)]));
}

function describeProblem(code: ErrorCode): Json {
  const { status, title, help } = problemInfo[code];
  const example = {
    type: problemType(code),
    title,
    status,
    detail: help,
    requestId: requestIdExample,
    ...(status === 400 && { errors: [{ pointer: "/name", detail: "is required." }] }),
  };
  return {
    description: `${title}.`,
    headers: { ...callerHeaders, ...describeHeaders(problemHeaders[code]) },
    content: { "application/problem+json": { schema: refer("schemas", "Problem"), example } },
  };
}

const errorsSchema = {
  type: "array",
  description: `With status 400: every validation error, up to ${errorsMax}, and where it is.`,
  minItems: 1,
  maxItems: errorsMax,
  items: closed(
    { detail: text() },
    {
      pointer: text("A JSON Pointer into the body."),
      parameter: text("The name of a path or query parameter."),
      header: text("The name of a header."),
    },
  ),
};

/** Open, because a proxy in front of the service may send problems of its own. */
const problemSchema = {
  type: "object",
  required: ["type", "title", "status", "detail"],
  properties: {
    type: text("A URN with the problem's code. Later versions may add others.", {
      examples: codes.map(problemType),
    }),
    title: text(),
    status: integer("int32", undefined, { minimum: 400, maximum: 599 }),
    detail: text("What to fix. Safe to show."),
    requestId: text("Absent if the service didn't see the request."),
    errors: errorsSchema,
  },
};

/** The schema's checks are functions, so their limits come from its metadata. */
function fromValibot(schema: v.GenericSchema): Json {
  const { $schema: _, ...described } = toJsonSchema(schema, {
    errorMode: "ignore",
    typeMode: "input",
    ignoreActions: ["check", "min_value", "max_value"],
    overrideSchema: ({ valibotSchema, jsonSchema }) => {
      if (valibotSchema.type === "bigint") return { type: "integer", format: "int64" };
      // Generators make a plain type of this, and an odd one of `anyOf`.
      const [inner] = valibotSchema.type === "nullish" ? (jsonSchema.anyOf ?? []) : [];
      if (typeof inner === "object") return { ...inner, type: ["string", "null"] };
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
