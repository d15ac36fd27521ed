/** What rules expect of answers. Each fails with a `Violation` that says what came instead. */
import type { Answer } from "./answer.ts";
import { Violation } from "./outcome.ts";

export function expectStatus(answer: Answer, ...statuses: number[]): void {
  expectThat(
    statuses.includes(answer.status),
    `the status must be ${statuses.join(" or ")}, and is ${answer.status}`,
    answer,
  );
}

/** `undefined` stands for a header that must not be there. */
export function expectHeader(
  answer: Answer,
  name: string,
  expected: string | RegExp | undefined,
): void {
  const value = answer.header(name);
  const fits = expected instanceof RegExp ? expected.test(value ?? "") : value === expected;
  const verb = expected instanceof RegExp ? "must match" : "must be";
  const wanted = expected === undefined ? "must not be there" : `${verb} ${expected}`;
  const found = value === undefined ? "is absent" : `is ${value}`;
  expectThat(fits, `the header ${name} ${wanted}, and ${found}`, answer);
}

/** Whatever their order and case. */
export function expectItems(answer: Answer, name: string, expected: readonly string[]): void {
  const items = answer.items(name);
  const missing = expected.filter((item) => !items.includes(item.toLowerCase()));
  expectThat(
    missing.length === 0,
    `the header ${name} must name ${missing.join(", ")}, and is ${answer.header(name) ?? "absent"}`,
    answer,
  );
}

/** As text, so that the order of fields counts and an id keeps its digits. */
export function expectJson(answer: Answer, expected: unknown): void {
  const wanted = show(expected);
  const found = answer.json === undefined ? "no JSON" : show(answer.json);
  expectThat(found === wanted, `the body must be ${wanted}, and is ${found}`, answer);
}

interface FoundFault {
  readonly pointer?: unknown;
  readonly parameter?: unknown;
  readonly header?: unknown;
  readonly detail?: unknown;
}

/** The faults that a problem tells; none if it tells none in the right form. */
export function faultsOf(answer: Answer): readonly FoundFault[] {
  const { errors } = (answer.json ?? {}) as { errors?: unknown };
  return Array.isArray(errors) ? errors.filter((fault) => fault && typeof fault === "object") : [];
}

/** 400 that names each of these places: `/name` in the body, a parameter, or a header. */
export function expectFaults(answer: Answer, ...places: string[]): void {
  expectStatus(answer, 400);
  const named = faultsOf(answer).map(({ pointer, parameter, header }) =>
    String(pointer ?? parameter ?? header).toLowerCase(),
  );
  for (const place of places) {
    const what = place === "" ? 'the body as a whole (the pointer "")' : place;
    expectThat(named.includes(place.toLowerCase()), `errors must name ${what}`, answer);
  }
}

export function expectThat(holds: boolean, otherwise: string, answer?: Answer): void {
  if (!holds) throw new Violation(otherwise, answer);
}

/** With the digits of a bigint, as JSON has them. */
function show(value: unknown): string {
  const digits = (_key: string, part: unknown) => (typeof part === "bigint" ? `${part}n` : part);
  return (JSON.stringify(value, digits) ?? "absent").replace(/"(-?\d+)n"/g, "$1");
}
