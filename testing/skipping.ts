/** Skips tests where the machine lacks what they need, and says why. */

const reasonsGiven = new Set<string>();

/** For `skipIf`: returns whether to skip, and prints the reason once. */
export function skipsUnless(isThere: boolean, reason: string): boolean {
  if (!isThere && !reasonsGiven.has(reason)) process.stderr.write(`Skipped: ${reason}\n`);
  if (!isThere) reasonsGiven.add(reason);
  return !isThere;
}

/** For `skipIf`: tests that run these programs. */
export function skipsWithout(...programs: readonly string[]): boolean {
  const missing = programs.filter((program) => Bun.which(program) === null);
  return skipsUnless(missing.length === 0, `not installed: ${missing.join(", ")}`);
}

/** For `skipIf`: tests that read /proc, or use another feature of Linux. */
export function skipsOutsideLinux(): boolean {
  return skipsUnless(process.platform === "linux", "needs Linux");
}
