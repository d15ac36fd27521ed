/** Loads what reads and writes files. Most people never need it, so it comes when it's used. */
export const loadFiles = () =>
  import("./files.ts").catch(() => {
    throw new Error("A part of this page couldn’t be loaded. Reload the page.");
  });
