/**
 * Writes the client's types from the schemas of the OpenAPI document: `npm run
 * generate:client-types`.
 */
import { join } from "node:path";
import { createOpenApi } from "../src/http/openapi.ts";

interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly (string | number)[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}

export const typesPath = join(import.meta.dir, "../src/client/wire-types.ts");
const formatter = join(import.meta.dir, "../node_modules/.bin/biome");
const names = ["PlantDraft", "Plant", "TagCount", "Me", "Problem"] as const;

export async function renderTypes(): Promise<string> {
  const document = createOpenApi({ version: "", basePath: "" });
  const { schemas } = document.components as { schemas: Record<string, Schema> };
  const types = names.map((name) => `export type ${name} = ${renderType(schemas[name] ?? {})};\n`);
  const opening =
    "/** What travels, from the OpenAPI document. Generated: `npm run generate:client-types`. */\n";
  const unformatted = new Response([opening, ...types].join("\n"));
  return Bun.$`${formatter} format --stdin-file-path=${typesPath} < ${unformatted}`.text();
}

/** An integer of 64 bits is a bigint, so that it stays exact. */
function renderType(schema: Schema): string {
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  switch (schema.type) {
    case "object":
      return renderObject(schema);
    case "array":
      return `readonly (${renderType(schema.items ?? {})})[]`;
    case "string":
      return "string";
    case "integer":
      return schema.format === "int64" ? "bigint" : "number";
    default:
      throw new Error(`There is no type for ${JSON.stringify(schema)}.`);
  }
}

function renderObject({ properties = {}, required = [] }: Schema): string {
  const lines = Object.entries(properties).map(([name, schema]) => {
    const comment = schema.description === undefined ? "" : `/** ${schema.description} */\n`;
    const isOptional = !required.includes(name);
    const type = renderType(schema) + (isOptional ? " | undefined" : "");
    return `${comment}readonly ${name}${isOptional ? "?" : ""}: ${type};`;
  });
  return `{\n${lines.join("\n")}\n}`;
}

if (import.meta.main) await Bun.write(typesPath, await renderTypes());
