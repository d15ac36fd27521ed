import type { Generator } from "../../test/generated-client.ts";

export const generators: Readonly<Record<string, Generator>>;
export function lint(document: unknown): Promise<[rule: string | number, path: string][]>;
