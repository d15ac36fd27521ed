import type { Generator } from "../../generated-client.ts";

export const generators: Readonly<Record<string, Generator>>;
export function lint(document: unknown): Promise<[rule: string | number, path: string][]>;
