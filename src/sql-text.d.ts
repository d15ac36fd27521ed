/** SQL files are imported as their text. */
declare module "*.sql" {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: the form that an import of a text file has.
  export default text;
}
