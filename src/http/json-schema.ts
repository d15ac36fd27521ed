/** The parts that the OpenAPI document is made of: schemas, headers, references. */
import type * as v from "valibot";

export type Json = Readonly<Record<string, unknown>>;

/**
 * The schemas of a page of operations, by name. They are only made when the OpenAPI document is
 * asked for, because what makes them from validation takes long to load.
 */
export type DescribeSchemas = (describe: {
  readonly fromValibot: (schema: v.GenericSchema) => Json;
}) => Readonly<Record<string, Json>>;

export function text(description?: string, more: Json = {}): Json {
  return { type: "string", description, ...more };
}

export function integer(format: "int32" | "int64", description?: string, more: Json = {}): Json {
  return { type: "integer", format, description, ...more };
}

/** Names the values that there are, in an open list: an `enum` would be closed. */
export function openList(...values: readonly (string | number)[]) {
  const known = values.map((value) => `\`${value}\``);
  return {
    description: `${known.slice(0, -1).join(", ")} or ${known.at(-1)}. Later versions may add others.`,
    examples: values,
  };
}

/** An object with these fields and no others. */
export function closed(required: Json, optional: Json = {}): Json {
  return {
    type: "object",
    required: Object.keys(required),
    properties: { ...required, ...optional },
    additionalProperties: false,
  };
}

export function refer(kind: "headers" | "responses" | "schemas", name: string): Json {
  return { $ref: `#/components/${kind}/${toName(name)}` };
}

/** Generators make identifiers of the names of components: `rate-limited` is `RateLimited`. */
export function toName(name: string): string {
  return name.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** A header of a response. */
export interface HeaderDescription {
  readonly description: string;
  readonly example: string | number;
  readonly pattern?: string;
  readonly required?: boolean;
}
