/** The client's types match the OpenAPI document. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { renderTypes, typesPath } from "../../scripts/generate-client-types.ts";

test("are up to date; else run npm run generate:client-types", async () => {
  expect(readFileSync(typesPath, "utf8")).toBe(await renderTypes());
});
