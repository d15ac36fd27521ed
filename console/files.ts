/** What reads and writes files of plants. The page loads it with the first import or export. */
export { checkRows, describeInvalid } from "../client/files/check.ts";
export { describeImport, Importer, makeImportKey } from "../client/files/importer.ts";
export { PlantRenderer } from "../client/files/renderer.ts";
export { formatOf, readRows } from "../client/files/rows.ts";
