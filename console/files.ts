/** What reads and writes files of plants. The page loads it with the first import or export. */
export { checkUpdateRows, describeInvalid } from "../client/files/check.ts";
export { Comparison, describeDifferences } from "../client/files/comparison.ts";
export { PlantRenderer } from "../client/files/renderer.ts";
export { formatOf, readUpdateRows } from "../client/files/rows.ts";
export { describeUpdate, Updater } from "../client/files/updater.ts";
export { ImportUndo } from "./import-undo.ts";
export { readPastedRows } from "./pasted-rows.ts";
